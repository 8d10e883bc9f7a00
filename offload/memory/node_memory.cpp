#include "offload/memory/node_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/process/control_group.h"

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

struct GroupFiles {
  const char *limit, *used, *droppable;
};

/// The smallest remainder under the limits of a group and its parents.
std::optional<std::int64_t> left_in_groups(const std::vector<std::string>& folders, const GroupFiles& files) {
  std::optional<std::int64_t> least;
  for (const std::string& folder : folders) {
    const auto limit = number_in(folder + files.limit), used = number_in(folder + files.used);
    if (!limit || !used || *limit >= (std::int64_t(1) << 60)) continue;
    const std::int64_t left = *limit - *used + number_in(folder + "/memory.stat", files.droppable).value_or(0);
    least = std::max<std::int64_t>(0, least ? std::min(*least, left) : left);
  }
  return least;
}

}  // namespace

NodeMemory node_memory(const std::string& root) {
  NodeMemory memory;
  const std::string facts = root + "/proc/meminfo";
  const auto total = number_in(facts, "MemTotal:"), available = number_in(facts, "MemAvailable:");
  if (available) memory = {*available * 1024, "MemAvailable"};
  const auto second =
      left_in_groups(control_group_folders("", root), {"/memory.max", "/memory.current", "inactive_file"});
  const auto first = left_in_groups(control_group_folders("memory", root),
                                    {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"});
  for (const auto& left : {second, first})
    if (left && (memory.available < 0 || *left < memory.available)) memory = {*left, "the control group's limit"};
  if (total && available) memory.used = (*total - *available) * 1024;
  return memory;
}

}  // namespace zero
