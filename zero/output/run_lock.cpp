#include "zero/output/run_lock.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& directory, const std::string& why) {
  throw InputError("job.output_dir = \"" + directory + "\" " + why);
}

/// Locks the directory. Tries again after 100 ms: zero_report and dry runs hold a lock for an instant.
int lock(const std::string& directory, FileCalls& calls) {
  const int file = lock_folder(directory, calls);
  if (file >= 0 || errno != EWOULDBLOCK) return file;
  calls.pause(std::chrono::milliseconds(100));
  return lock_folder(directory, calls);
}

}  // namespace

// Locks the directory itself, so that no file is left behind and the lock ends with the process.
RunLock::RunLock(const std::string& directory, FileCalls& calls) : calls_(calls) {
  try {
    do {
      make(directory);
      file_ = lock(directory, calls_);
    } while (file_ < 0 && errno == ENOENT);  // another run removed it as it ended
    if (file_ < 0 && errno == EWOULDBLOCK)
      refuse(directory, "is in use by another run: wait for its end, or name another directory");
    if (file_ < 0)
      log_warning("job.output_dir = \"", directory, "\": its file system has no locks (", std::strerror(errno),
                  "), so nothing keeps a second run out of it");
    if (!may_access(directory, W_OK | X_OK))
      refuse(directory,
             text("cannot be written to: ", std::strerror(errno), ": name a directory that you may write to"));
  } catch (...) {
    release();
    throw;
  }
}

RunLock::~RunLock() { release(); }

void RunLock::release() {
  for (auto directory = made_.rbegin(); directory != made_.rend(); ++directory) ::rmdir(directory->c_str());
  if (file_ >= 0) calls_.close(file_);
}

void RunLock::make(const std::string& directory) {
  std::vector<fs::path> missing;
  for (fs::path path = fs::absolute(directory).lexically_normal(); !path.empty() && !is_there(path.string());
       path = path.parent_path())
    missing.push_back(path);
  for (auto path = missing.rbegin(); path != missing.rend(); ++path) {
    if (path->filename().empty()) continue;  // the part after a slash at the end
    std::error_code error;
    if (fs::create_directory(*path, error)) made_.push_back(path->string());
    if (error)
      refuse(directory, text("cannot be made: ", error.message(), " (", path->string(),
                             "): name a directory that you may write to"));
  }
}

bool is_locked(const std::string& directory, FileCalls& calls) {
  const int file = lock(directory, calls);
  if (file < 0) return errno == EWOULDBLOCK;
  calls.close(file);
  return false;
}

}  // namespace zero
