#pragma once
// DiskDirectory: one rank's own place under offload.nvme_dir, for state that lives as long as the run and no longer.
#include <string>

namespace zero {

/// `root/rank-R/`, locked while the object lives. Everything in it is scratch: checkpoints are elsewhere. What another
/// run left behind (its lock is free, the names are this tier's) is swept with one line in the log; a directory in use
/// and a file of any other name are refused.
class DiskDirectory {
 public:
  /// Creates what is missing. Error: in use by another run, foreign files, or the system's reason.
  DiskDirectory(const std::string& root, int rank);
  /// Removes the rank's directory; files still open in it are theirs to remove before.
  ~DiskDirectory();
  DiskDirectory(const DiskDirectory&) = delete;
  DiskDirectory& operator=(const DiskDirectory&) = delete;

  const std::string& path() const { return path_; }

  static constexpr const char* suffix = ".zero-state";  // of every file of the tier

 private:
  void lock();
  void sweep() const;

  std::string path_;
  int lock_ = -1;
};

}  // namespace zero
