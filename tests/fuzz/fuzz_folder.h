#pragma once
// FuzzFolder: the files of one input on disk, for readers that take paths.
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/temporary_folder.h"

namespace zero {

class FuzzFolder {
 public:
  /// Returns the program's one folder, which then holds only these files.
  static const TemporaryFolder& with(const FuzzFiles& files) {
    static const TemporaryFolder folder;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      if (!files.contains(entry.path().filename().string())) std::filesystem::remove_all(entry.path());
    for (const auto& [name, content] : files) folder.write(name, content);
    return folder;
  }
};

/// Returns the content of a file, or "" if it is missing.
inline std::string content_of(const FuzzFiles& files, const std::string& name) {
  const auto found = files.find(name);
  return found == files.end() ? "" : found->second;
}

}  // namespace zero
