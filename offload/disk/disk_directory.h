#pragma once
// DiskDirectory: one rank's folder under offload.nvme_dir, for state that lives only as long as the run.
#include <string>

namespace zero {

/// `root/rank-R/`, locked while the object lives. All files in it are scratch: checkpoints lie elsewhere. If an earlier
/// run left files of this tier and the lock is free, they are removed and one line is logged.
class DiskDirectory {
 public:
  /// Creates missing folders. Throws Error if another run uses the directory, if it holds files with other names, or if
  /// a system call fails.
  DiskDirectory(const std::string& root, int rank);
  /// Removes the rank's directory. All DiskFiles in it must be destroyed first.
  ~DiskDirectory();
  DiskDirectory(const DiskDirectory&) = delete;
  DiskDirectory& operator=(const DiskDirectory&) = delete;

  const std::string& path() const { return path_; }

  static constexpr const char* suffix = ".zero-state";  // of all the tier's files

 private:
  void lock();
  void sweep() const;

  std::string path_;
  int lock_ = -1;
};

}  // namespace zero
