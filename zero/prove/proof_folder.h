#pragma once
// ProofFolder: the temporary folder that a proof's runs write into.
#include <sys/types.h>

#include <string>

namespace zero {

/// A folder of its own below `place` (empty: TMPDIR, or /tmp), removed with all that is in it at the end unless kept. A
/// process that outlives this one removes it where this one is killed, when the programs that it started have ended.
/// No other folder is ever looked at: where that process is killed, too, or the machine stops, this one stays.
class ProofFolder {
 public:
  /// InputError where no folder can be made there; Error where no process can be started.
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
  int alive_ =
      -1;  // of a pipe whose end of file tells the watcher that nobody holds it: neither this process nor a run
};

}  // namespace zero
