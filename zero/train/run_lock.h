#pragma once
// RunLock: one run at a time in an output directory, so that a run that was queued again does not resume beside the old one.
#include <string>

namespace zero {

class RunLock {
 public:
  /// Makes the directory where it is missing. InputError when another process holds its lock; where the file system has no
  /// locks there is none, and nothing is said.
  explicit RunLock(const std::string& directory);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace zero
