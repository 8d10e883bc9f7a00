#include "zero/programs/written_output.h"

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/files/lookup.h"

namespace zero {

void require_written_output() {
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout))
    throw Error("standard output cannot be written: is the disk full, or did its reader end?");
}

void require_folder_for(const std::string& option, const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  if (!folder.empty() && !is_folder(folder))
    throw InputError(option + " " + file + ": the folder " + folder + " is not there: make it, or name another file");
}

}  // namespace zero
