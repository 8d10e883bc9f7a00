#pragma once
// DiskDirectory: one rank's folder under offload.nvme_dir, for state that lives only as long as the run.
#include <string>

namespace zero {

/// `root/rank-R/`, locked while the object lives. Everything in it is scratch: checkpoints are elsewhere. Remains of
/// another run (its lock is free, and the names are this tier's) are removed with one line in the log. A directory in
/// use and a file of any other name are refused.
class DiskDirectory {
 public:
  /// Creates missing folders. Throws Error if another run uses the directory, if it holds foreign files, or with the
  /// system's reason.
  DiskDirectory(const std::string& root, int rank);
  /// Removes the rank's directory. Open files in it must remove themselves before.
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
