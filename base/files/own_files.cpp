#include "base/files/own_files.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

bool lies_in(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

/// models--OWNER--NAME/blobs/HASH
bool is_cached_blob(const fs::path& file) {
  const fs::path blobs = file.parent_path();
  return blobs.filename() == "blobs" && blobs.parent_path().filename().string().starts_with("models--");
}

}  // namespace

void require_own_file(const std::string& folder, const std::string& path) {
  std::error_code none;
  const fs::path target = fs::canonical(path, none);
  if (none) return;
  if (!fs::is_regular_file(target, none) && !fs::is_directory(target, none))
    throw InputError(text(path, ": is no regular file"));
  if (!fs::is_symlink(path, none) || lies_in(target, fs::canonical(folder, none)) ||
      target.filename() == fs::path(path).filename() || is_cached_blob(target))
    return;
  throw InputError(text(path, ": is a link to ", target.string(),
                        ", outside of the folder and of another name; whoever made the folder may want that file to be "
                        "copied. Put the file itself there if it belongs there"));
}

void require_own_files(const std::string& folder, const std::vector<std::string_view>& endings) {
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none))
    if (std::find(endings.begin(), endings.end(), entry->path().extension().string()) != endings.end())
      require_own_file(folder, entry->path().string());
}

}  // namespace zero
