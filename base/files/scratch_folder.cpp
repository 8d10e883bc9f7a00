#include "base/files/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace zero {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder(const std::string& purpose) {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  if (error) throw InputError("TMPDIR: is no folder for temporary files: " + error.message());
  path_ = (place / ("zero-" + purpose + "-XXXXXX")).string();
  if (!::mkdtemp(path_.data()))
    throw InputError(path_ + ": cannot be made: " + std::strerror(errno) + "; set TMPDIR to a folder with free space");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace zero
