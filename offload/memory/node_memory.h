#pragma once
// The memory that processes of this node can still take, as the system reports it. Linux only; -1 if the system does
// not say.
#include <cstdint>
#include <string>

namespace zero {

struct NodeMemory {
  std::int64_t available = -1;  // bytes, over all processes of the node or container
  std::string source;           // where it comes from: "MemAvailable" or "the control group's limit"
  std::int64_t used = -1;       // bytes of the whole node: MemTotal - MemAvailable
};

/// The smaller of MemAvailable and the memory left under the limits of the process's control groups (versions 1 and 2).
/// Page cache that can be dropped counts as free. Tests set `root`, a prefix of /proc and /sys.
NodeMemory node_memory(const std::string& root = "");

}  // namespace zero
