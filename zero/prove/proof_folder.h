#pragma once
// ProofFolder: the temporary folder that a proof's runs write into.
#include <string>

namespace zero {

/// A folder of its own below `place` (empty: TMPDIR, or /tmp), removed with all that is in it at the end unless kept.
/// Those that were left there, by proofs that were killed, go when it is made: it is locked as long as this process or a
/// program that it started lives. Where the file system has no locks they stay.
class ProofFolder {
 public:
  ProofFolder(const std::string& place, bool keep);
  ~ProofFolder();
  ProofFolder(const ProofFolder&) = delete;
  ProofFolder& operator=(const ProofFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool keep_;
  int lock_ = -1;
};

}  // namespace zero
