#pragma once
// ScratchFolder: a folder for temporary files, which ends with its object or its process.
#include <sys/types.h>

#include <string>

namespace zero {

struct ScratchOptions {
  std::string place = "";                                         // the parent folder; empty: TMPDIR, or /tmp
  std::string remedy = "set TMPDIR to a folder with free space";  // if no folder can be made there
  bool keep = false;                                              // the folder stays
};

/// Makes PLACE/zero-PURPOSE-XXXXXX and removes it at the end. If this process dies, of any signal, a watcher process
/// removes the folder once the programs that it started have ended, too. If the watcher is killed as well, or the
/// machine stops, the folder stays. Never touches another folder.
class ScratchFolder {
 public:
  /// Throws InputError that names the place if the folder cannot be made, and Error if the watcher cannot be started.
  explicit ScratchFolder(const std::string& purpose, const ScratchOptions& options = {});
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  /// Absolute.
  const std::string& path() const { return path_; }

 private:
  void start_watcher();

  std::string path_;
  bool keep_;
  pid_t watcher_ = -1;
  int alive_ = -1;  // end of a pipe; at end of file the watcher knows that this process and its programs have ended
};

}  // namespace zero
