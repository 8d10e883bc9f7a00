#pragma once
// RunLock: one run at a time in an output directory, so that a run that was queued again does not work beside the old
// one.
#include <string>
#include <vector>

namespace zero {

class RunLock {
 public:
  /// Makes the directory where it is missing. InputError when another process holds its lock, and where it cannot be
  /// made or written to; where the file system has no locks there is none, and a warning says so.
  explicit RunLock(const std::string& directory);
  /// Removes the directories that it made and that are still empty: a run that is refused leaves nothing behind.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  void make(const std::string& directory);
  bool is_current(const std::string& directory) const;

  int file_ = -1;
  std::vector<std::string> made_;  // outermost first
};

}  // namespace zero
