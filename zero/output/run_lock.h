#pragma once
// RunLock: one run at a time in an output directory, so that a run that was queued again does not work beside the old
// one.
#include <string>
#include <vector>

#include "base/files/file_calls.h"

namespace zero {

class RunLock {
 public:
  /// Makes the directory where it is missing. InputError where another process holds its lock, where it cannot be made or
  /// written to, and where the system gives no answer. A file system without locks costs a warning, and there is none then.
  /// `calls` outlive the lock.
  RunLock(const std::string& directory, FileCalls& calls);
  /// Removes the directories that it made and that are still empty: a run that is refused leaves nothing behind.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  void make(const std::string& directory);
  void release();  // a folder that was made and is still empty goes too

  FileCalls& calls_;
  int file_ = -1;
  std::vector<std::string> made_;  // outermost first
};

}  // namespace zero
