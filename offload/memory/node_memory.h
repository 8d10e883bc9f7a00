#pragma once
// What a process of this node may still take, as the system says now. Linux only; -1 where the system does not say.
#include <cstdint>
#include <string>

namespace zero {

struct NodeMemory {
  std::int64_t available = -1;  // bytes, over all processes of the node or container
  std::string source;           // what sets it: "MemAvailable" or "the control group's limit"
};

/// The smaller of MemAvailable and what the limits of the process's control groups leave (versions 1 and 2; page cache
/// that can be dropped counts as free). `root` stands in front of /proc and /sys, for tests.
NodeMemory node_memory(const std::string& root = "");

/// Free bytes of the file system that would hold `path`, for an ordinary user; the path need not exist yet.
std::int64_t free_disk_bytes(const std::string& path);

}  // namespace zero
