#pragma once
// ScratchFolder: a folder for temporary files, which ends with its object.
#include <string>

namespace zero {

class ScratchFolder {
 public:
  /// Makes TMPDIR/zero-PURPOSE-XXXXXX. Throws InputError that names TMPDIR if it cannot be made.
  explicit ScratchFolder(const std::string& purpose);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace zero
