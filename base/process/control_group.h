#pragma once
// ControlGroup: the folders of this process's control group, whose files state its limits. Linux only.
#include <string>
#include <vector>

namespace zero {

/// The folders of the process's group and of its parents, topmost last. `controller` names a hierarchy of version 1,
/// such as "memory". If it is empty, version 2 is used. In a container, paths may be the host's, so folders may not
/// exist. Tests set `root`, a prefix of /proc and /sys.
std::vector<std::string> control_group_folders(const std::string& controller, const std::string& root = "");

/// The CPU time, in cores, that the limits of the group and its parents allow (cpu.max, cpu.cfs_quota_us). 0 if there
/// is no limit.
double control_group_cores(const std::string& root = "");

}  // namespace zero
