#include "base/files/own_files.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

bool lies_in(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

/// True for models--OWNER--NAME/blobs/HASH.
bool is_cached_blob(const fs::path& file) {
  const fs::path blobs = file.parent_path();
  return blobs.filename() == "blobs" && blobs.parent_path().filename().string().starts_with("models--");
}

}  // namespace

void require_own_file(const std::string& folder, const std::string& path) {
  const FileFacts::Kind kind = facts_of(path).kind;
  if (kind == FileFacts::Kind::absent) return;
  if (kind != FileFacts::Kind::file && kind != FileFacts::Kind::directory)
    throw InputError(text(path, ": is no regular file"));
  if (facts_of(path, Links::kept).kind != FileFacts::Kind::link) return;
  const fs::path target = real_path(path);
  if (lies_in(target, real_path(folder)) || target.filename() == fs::path(path).filename() || is_cached_blob(target))
    return;
  throw InputError(text(path, ": is a link to ", target.string(),
                        ", outside the folder and of another name; whoever made the folder may want that file to be "
                        "copied. Put the file itself there if it belongs there"));
}

void require_own_files(const std::string& folder, const std::vector<std::string_view>& endings) {
  for (const std::string& name : names_in(folder))
    if (std::find(endings.begin(), endings.end(), fs::path(name).extension().string()) != endings.end())
      require_own_file(folder, (fs::path(folder) / name).string());
}

}  // namespace zero
