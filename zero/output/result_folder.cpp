#include "zero/output/result_folder.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "zero/output/run_mark.h"

namespace zero {

namespace fs = std::filesystem;

ResultFolder::ResultFolder(std::string path) : path_(std::move(path)) {
  std::error_code none;
  existed_ = fs::exists(path_, none);
  was_empty_ = !existed_ || (fs::is_directory(path_, none) && fs::is_empty(path_, none));
  if (is_marked(path_, Mark::result)) former_ = files();
}

ResultFolder::~ResultFolder() {
  if (finished_ || !was_empty_) return;
  try {
    clear_result_folder(path_);
    if (existed_) fs::create_directory(path_);
  } catch (const std::exception& error) {
    log_warning(error.what());
  }
}

void ResultFolder::mark() { mark_folder(path_, Mark::result); }

void ResultFolder::finish() {
  finished_ = true;
  const std::map<std::string, Stamp> now = files();
  for (const auto& [name, stamp] : former_) {
    const auto found = now.find(name);
    if (found == now.end() || found->second != stamp) continue;
    std::error_code error;
    fs::remove(fs::path(path_) / name, error);
    if (error) throw Error(text(path_, "/", name, " of a former result cannot be removed: ", error.message()));
  }
}

std::map<std::string, ResultFolder::Stamp> ResultFolder::files() const {
  std::map<std::string, Stamp> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(path_, none)) {
    const std::string name = entry.path().filename().string();
    struct stat status {};
    if (!is_result_file(name) || ::lstat(entry.path().c_str(), &status) != 0 || S_ISDIR(status.st_mode)) continue;
    found[name] = {status.st_ino, status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
  }
  return found;
}

}  // namespace zero
