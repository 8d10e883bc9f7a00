#include "zero/prove/proof_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

// A kept one has another name, under which nobody looks for what is to be removed.
const std::string temporary = "zero-proof-", kept = "zero-prove-", pattern = "XXXXXX";

/// Removes the folder if it is this user's and nobody has locked it.
void remove_abandoned(const fs::path& folder) {
  const int lock = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0) return;
  struct stat status {};
  if (::fstat(lock, &status) == 0 && status.st_uid == ::geteuid() && ::flock(lock, LOCK_EX | LOCK_NB) == 0) {
    std::error_code error;
    fs::remove_all(folder, error);
    if (!error) log_info("removed ", folder.string(), ", which a zero_prove that was killed has left");
  }
  ::close(lock);
}

void remove_abandoned_in(const std::string& place) {
  std::error_code none;
  for (fs::directory_iterator entry(place, none), end; !none && entry != end; entry.increment(none)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(temporary) && name.size() == temporary.size() + pattern.size())
      remove_abandoned(entry->path());
  }
}

bool is_there(const std::string& path, int file) {
  struct stat held {
  }, named{};
  return ::fstat(file, &held) == 0 && ::lstat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino;
}

}  // namespace

// The lock goes on in the programs that are started. Until it is taken another proof may hold the folder for abandoned.
ProofFolder::ProofFolder(const std::string& place, bool keep) : keep_(keep) {
  const std::string base = place.empty() ? fs::temp_directory_path().string() : place;
  remove_abandoned_in(base);
  do {
    if (lock_ >= 0) ::close(lock_);
    path_ = base + "/" + (keep ? kept : temporary) + pattern;
    if (!::mkdtemp(path_.data()))
      throw InputError(base + ": no folder can be made there: " + std::strerror(errno) +
                       "; name another one by --scratch");
    lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY);
    if (lock_ >= 0) ::flock(lock_, LOCK_EX | LOCK_NB);
  } while (lock_ >= 0 && !is_there(path_, lock_));
}

ProofFolder::~ProofFolder() {
  std::error_code none;
  if (!keep_) fs::remove_all(path_, none);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace zero
