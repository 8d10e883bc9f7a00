#pragma once
// ProofFolder: the temporary folder for a proof's runs.
#include <sys/types.h>

#include <string>

namespace zero {

/// Creates a folder in `place` (empty: TMPDIR, or /tmp) and removes it at the end unless `keep` is set. If this process
/// is killed, a watcher process removes the folder once the programs it started have ended. If the watcher is killed
/// too, or the machine stops, the folder stays. Never touches another folder.
class ProofFolder {
 public:
  /// Throws InputError if the folder cannot be created, and Error if the watcher cannot be started.
  ProofFolder(const std::string& place, bool keep);
  ~ProofFolder();
  ProofFolder(const ProofFolder&) = delete;
  ProofFolder& operator=(const ProofFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  void start_watcher();

  std::string path_;
  bool keep_;
  pid_t watcher_ = -1;
  int alive_ = -1;  // end of a pipe; at end of file the watcher knows that this process and its runs have ended
};

}  // namespace zero
