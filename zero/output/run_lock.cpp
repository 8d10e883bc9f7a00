#include "zero/output/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
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

}  // namespace

// The directory itself is locked: no file is left behind, and the lock ends with the process.
RunLock::RunLock(const std::string& directory) {
  try {
    do {
      if (file_ >= 0) ::close(file_);
      make(directory);
      file_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (file_ < 0)
        refuse(directory,
               text("cannot be opened: ", std::strerror(errno), ": name a directory that you may read and write"));
      if (::flock(file_, LOCK_EX | LOCK_NB) == 0) continue;
      if (errno == EWOULDBLOCK)
        refuse(directory, "is in use by a run that goes on: wait for its end, or name another directory");
      log_warning("job.output_dir = \"", directory, "\": its file system has no locks (", std::strerror(errno),
                  "), so nothing keeps a second run from it");
      break;
    } while (!is_current(directory));
    if (::access(directory.c_str(), W_OK | X_OK) != 0)
      refuse(directory,
             text("cannot be written to: ", std::strerror(errno), ": name a directory that you may write to"));
  } catch (...) {
    if (file_ >= 0) ::close(file_);
    throw;
  }
}

RunLock::~RunLock() {
  for (auto directory = made_.rbegin(); directory != made_.rend(); ++directory) ::rmdir(directory->c_str());
  ::close(file_);
}

void RunLock::make(const std::string& directory) {
  std::vector<fs::path> missing;
  for (fs::path path = fs::absolute(directory).lexically_normal(); !path.empty() && !is_there(path.string());
       path = path.parent_path())
    missing.push_back(path);
  for (auto path = missing.rbegin(); path != missing.rend(); ++path) {
    if (path->filename().empty()) continue;  // what follows a slash at the end
    std::error_code error;
    if (fs::create_directory(*path, error)) made_.push_back(path->string());
    if (error)
      refuse(directory, text("cannot be made: ", error.message(), " (", path->string(),
                             "): name a directory that you may write to"));
  }
}

// A run that ended in between may have removed the directory that was opened.
bool RunLock::is_current(const std::string& directory) const {
  FileCalls calls;
  FileFacts held;
  answer_of(calls, directory, "looked at", [&] { return calls.look(file_, held); });
  const FileFacts named = facts_of(directory, calls);
  return named.kind != FileFacts::Kind::absent && held.inode == named.inode && held.device == named.device;
}

}  // namespace zero
