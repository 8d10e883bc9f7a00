#pragma once
// Transfer: moves bytes to or from a file, in as many calls as necessary.
#include <cstdint>

#include "base/files/file_calls.h"

namespace zero {

/// The result of a transfer.
struct Transfer {
  std::int64_t moved = 0;
  int reason = 0;  // errno of the call that failed; 0 if none did
};

/// Writes `bytes` starting at `offset`, and retries calls that a signal interrupts. After a partial write, the next
/// call starts at the last multiple of `block`, because direct writes take whole blocks. A call that writes less than a
/// block is reported as a full disk (ENOSPC). A call that writes nothing is reported as EIO.
Transfer write_all(FileCalls& calls, int file, const void* from, std::int64_t bytes, std::int64_t offset,
                   std::int64_t block = 1);

/// Reads `bytes` starting at `offset`. If fewer bytes are moved and `reason` is 0, the file ended. A call that fails
/// for a transient reason is retried (base/files/lookup.h).
Transfer read_all(FileCalls& calls, int file, void* to, std::int64_t bytes, std::int64_t offset);

}  // namespace zero
