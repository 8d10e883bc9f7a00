#pragma once
// The room that a disk has left.
#include <cstdint>
#include <string>

namespace zero {

/// Free bytes, for an ordinary user, of the file system that would hold `path`. The path need not exist yet. -1 if the
/// system does not say.
std::int64_t free_disk_bytes(const std::string& path);

}  // namespace zero
