#pragma once
// Running: whether a run works in an output directory just now.
#include <string>

namespace zero {

/// True if a process holds the run's lock of the folder (zero/output/run_lock.h). Looks for an instant, with a shared
/// lock, which a run that starts at that instant waits out. On a file system without locks: true if metrics.jsonl was
/// written within the last minute.
bool is_running(const std::string& folder);

}  // namespace zero
