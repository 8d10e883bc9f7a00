#include "zero/fetch/folder_lock.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/make_folder.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::chrono::milliseconds look_again{200}, speak_again{60'000};

}  // namespace

FolderLock::FolderLock(FileCalls& calls, std::string folder, std::string inner)
    : calls_(calls), folder_(std::move(folder)) {
  try {
    lock();
    make(inner);
    for (const std::string& written : {folder_, inner})
      if (!may_access(written, W_OK | X_OK))
        throw InputError(text(written, ": cannot be written to: ", std::strerror(errno), "; name another folder"));
  } catch (...) {
    release();
    throw;
  }
}

FolderLock::~FolderLock() { release(); }

void FolderLock::release() {
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) ::rmdir(folder->c_str());
  if (file_ >= 0) calls_.close(std::exchange(file_, -1));
}

void FolderLock::make(const std::string& folder) {
  const std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal();
  std::vector<std::string> missing;
  for (std::filesystem::path path = whole; !is_there(path.string()); path = path.parent_path())
    missing.push_back(path.string());
  try {
    for (auto path = missing.rbegin(); path != missing.rend(); ++path)
      if (make_folder(calls_, *path)) made_.push_back(*path);
  } catch (const InputError&) {
    throw;
  } catch (const Error& error) {
    throw InputError(error.what());  // nothing was written yet
  }
  if (!is_folder(folder)) throw InputError(text(folder, ": is no folder; name another one"));
}

void FolderLock::lock() {
  for (std::chrono::milliseconds waited{0};;) {
    make(folder_);
    file_ = lock_folder(folder_, calls_);
    if (file_ >= 0) return;
    if (errno == ENOENT) continue;  // another fetch removed it as it ended
    if (errno != EWOULDBLOCK) {
      log_warning(folder_, ": its file system has no locks (", std::strerror(errno),
                  "), so nothing keeps a second fetch out of it");
      return;
    }
    if (waited % speak_again == waited.zero()) log_info(folder_, ": another fetch writes to it; waiting for its end");
    calls_.pause(look_again);
    waited += look_again;
  }
}

}  // namespace zero
