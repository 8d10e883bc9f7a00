#pragma once
// RunLock: allows one run at a time in an output directory, so that a requeued run cannot work next to the old
// one.
#include <string>
#include <vector>

#include "base/files/file_calls.h"

namespace zero {

class RunLock {
 public:
  /// Creates the directory if it is missing. Throws InputError if another process holds the lock, if the directory
  /// cannot be created or written to, or if the system cannot tell. On a file system without locks, warns and does not
  /// lock. `calls` must outlive the lock.
  RunLock(const std::string& directory, FileCalls& calls);
  /// Removes directories that it created and that are still empty, so that a run that ends in an error leaves nothing
  /// behind.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  void make(const std::string& directory);
  void release();  // also removes directories that it created and that are still empty

  FileCalls& calls_;
  int file_ = -1;
  std::vector<std::string> made_;  // outermost first
};

/// True if a run holds the lock of the directory. Takes the lock for an instant. A run that starts at that instant
/// waits.
bool is_locked(const std::string& directory, FileCalls& calls);

}  // namespace zero
