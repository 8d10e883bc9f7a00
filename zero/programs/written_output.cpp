#include "zero/programs/written_output.h"

#include <unistd.h>

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
  const std::string place = folder.empty() ? "." : folder;
  const bool is_kernels = belongs_to_kernel(place);
  if (is_kernels || !may_access(place, W_OK | X_OK))
    throw InputError(option + " " + file + ": no file can be made in " + place +
                     (is_kernels ? ", which belongs to the kernel" : ", where you may not write") +
                     ": name another file");
}

}  // namespace zero
