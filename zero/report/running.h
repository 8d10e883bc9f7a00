#pragma once
// Running: checks if a run is working in an output directory at this moment.
#include <string>

namespace zero {

/// True if a process holds the run's lock of the folder (zero/output/run_lock.h). The check takes a shared lock for an
/// instant. A run that starts at that instant waits for the lock. On a file system without locks, returns true if
/// metrics.jsonl was written within the last minute.
bool is_running(const std::string& folder);

}  // namespace zero
