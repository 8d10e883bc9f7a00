#pragma once
// The memory that processes of this node can still allocate, as the system reports it. Linux only. Values are -1 if the
// system does not say.
#include <cstdint>
#include <string>

namespace zero {

struct NodeMemory {
  std::int64_t available = -1;  // bytes, over all processes of the node or container
  std::string source;           // of that number: "MemAvailable" or "the control group's limit"
};

/// The smaller of MemAvailable and the memory left under the limits of the process's control groups (versions 1 and 2).
/// Page cache that can be dropped counts as free. Tests set `root`, a prefix of /proc and /sys.
NodeMemory node_memory(const std::string& root = "");

/// The bytes that an ordinary user can still write on the file system of `path`. The path need not exist yet.
std::int64_t free_disk_bytes(const std::string& path);

}  // namespace zero
