#pragma once
// ControlGroup: the folders of this process's control group, whose files state its limits. Linux only.
#include <string>
#include <vector>

namespace zero {

/// The folder of the process's group and those of its parents, the top last. `controller` names the hierarchy of
/// version 1, such as "memory"; empty: version 2. In a container the path may be the host's, so folders may not exist.
/// Tests set `root`, a prefix of /proc and /sys.
std::vector<std::string> control_group_folders(const std::string& controller, const std::string& root = "");

/// The number of cores' time that the limits of the group and its parents (cpu.max, cpu.cfs_quota_us) allow; 0 if
/// there is no limit.
double control_group_cores(const std::string& root = "");

}  // namespace zero
