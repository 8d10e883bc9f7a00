#pragma once
// Examines shared memory, io_uring and the disk.
#include <string>

#include "zero/doctor/finding.h"

namespace zero {

/// /dev/shm: its size, its free bytes, and whether a segment can be made there.
Finding examine_shared_memory();

/// Whether this process may use io_uring, with registered buffers or without.
Finding examine_io_uring();

/// Writes a file into a new folder in `folder` as the disk tier does, reads it again, and removes it. The file has at
/// most `bytes` bytes, and at most a tenth of the free bytes. The speed is that of the device if the file system has
/// direct I/O.
Finding examine_disk(const std::string& folder, std::int64_t bytes = std::int64_t(256) << 20);

}  // namespace zero
