#include "offload/memory/node_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

namespace zero {
namespace {

/// The number after a key in a file of "key number" lines. Without a key, reads the file's first word. Returns nothing
/// if that is not a number.
std::optional<std::int64_t> number_in(const std::string& file, const std::string& key = "") {
  std::ifstream in(file);
  std::string word;
  while (in >> word) {
    if (!key.empty() && word != key) continue;
    if (!key.empty() && !(in >> word)) break;
    try {
      return std::stoll(word);
    } catch (const std::exception&) {
      return std::nullopt;  // "max"
    }
  }
  return std::nullopt;
}

/// The process's group in a hierarchy, "/" or below, from /proc/self/cgroup: "0::/path" or "4:memory:/path".
std::string own_group(const std::string& root, const std::string& controller) {
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second != std::string::npos && line.substr(first + 1, second - first - 1) == controller)
      return line.substr(second + 1);
  }
  return "/";
}

struct GroupFiles {
  const char *limit, *used, *droppable;
};

/// The smallest remainder under the limits of a group and its parents. In a container the path may be the host's; then
/// use the top.
std::optional<std::int64_t> left_in_groups(const std::string& top, std::string group, const GroupFiles& files) {
  std::optional<std::int64_t> least;
  for (;; group = std::filesystem::path(group).parent_path()) {
    const std::string folder = top + (group == "/" ? "" : group);
    const auto limit = number_in(folder + files.limit), used = number_in(folder + files.used);
    if (limit && used && *limit < (std::int64_t(1) << 60)) {
      const std::int64_t left = *limit - *used + number_in(folder + "/memory.stat", files.droppable).value_or(0);
      least = std::max<std::int64_t>(0, least ? std::min(*least, left) : left);
    }
    if (group == "/" || group.empty()) return least;
  }
}

}  // namespace

NodeMemory node_memory(const std::string& root) {
  NodeMemory memory;
  const std::string facts = root + "/proc/meminfo";
  const auto total = number_in(facts, "MemTotal:"), available = number_in(facts, "MemAvailable:");
  if (available) memory = {*available * 1024, "MemAvailable"};
  const std::string groups = root + "/sys/fs/cgroup";
  const auto second = left_in_groups(groups, own_group(root, ""), {"/memory.max", "/memory.current", "inactive_file"});
  const auto first = left_in_groups(groups + "/memory", own_group(root, "memory"),
                                    {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"});
  for (const auto& left : {second, first})
    if (left && (memory.available < 0 || *left < memory.available)) memory = {*left, "the control group's limit"};
  if (total && available) memory.used = (*total - *available) * 1024;
  return memory;
}

}  // namespace zero
