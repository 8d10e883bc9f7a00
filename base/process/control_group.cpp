#include "base/process/control_group.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace zero {
namespace {

/// The process's group in a hierarchy, "/" or below, from /proc/self/cgroup: "0::/path" or "4:cpu,cpuacct:/path".
std::string own_group(const std::string& root, const std::string& controller) {
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names == "," + controller + "," || (!controller.empty() && names.find("," + controller + ",") != names.npos))
      return line.substr(second + 1);
  }
  return "/";
}

/// Quota and period of version 2 are in one file, those of version 1 in two. "max" and -1 mean no limit.
double cores_in(const std::string& folder) {
  double quota = 0, period = 0;
  if (std::ifstream both(folder + "/cpu.max"); !(both >> quota >> period)) {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

std::vector<std::string> control_group_folders(const std::string& controller, const std::string& root) {
  const std::string top = root + "/sys/fs/cgroup" + (controller.empty() ? "" : "/" + controller);
  std::vector<std::string> folders;
  for (std::string group = own_group(root, controller);; group = std::filesystem::path(group).parent_path()) {
    const bool last = group == "/" || group.empty();
    folders.push_back(top + (last ? "" : group));
    if (last) return folders;
  }
}

double control_group_cores(const std::string& root) {
  double least = 0;
  for (const char* controller : {"", "cpu"})
    for (const std::string& folder : control_group_folders(controller, root))
      if (const double cores = cores_in(folder); cores > 0) least = least > 0 ? std::min(least, cores) : cores;
  return least;
}

}  // namespace zero
