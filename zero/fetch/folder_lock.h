#pragma once
// FolderLock: one fetch at a time in a folder. A second one waits, and then finds what the first has fetched.
#include <string>
#include <vector>

#include "base/files/file_calls.h"

namespace zero {

class FolderLock {
 public:
  /// Makes the folder and `inner`, a folder in it, and waits for the lock, with a line a minute. Throws InputError if a
  /// folder cannot be made or written to. On a file system without locks, warns and does not lock. `calls` must outlive
  /// the lock.
  FolderLock(FileCalls& calls, std::string folder, std::string inner);
  /// Removes the folders that it made and that are still empty.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  void make(const std::string& folder);
  void lock();
  void release();

  FileCalls& calls_;
  std::string folder_;
  std::vector<std::string> made_;  // outermost first
  int file_ = -1;
};

}  // namespace zero
