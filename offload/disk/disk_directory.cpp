#include "offload/disk/disk_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace fs = std::filesystem;

DiskDirectory::DiskDirectory(const std::string& root, int rank)
    : path_((fs::path(root) / text("rank-", rank)).string()) {
  std::error_code code;
  fs::create_directories(path_, code);
  if (code) throw Error(text("offload.nvme_dir: cannot create ", path_, ": ", code.message()));
  lock();
  try {
    sweep();
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

void DiskDirectory::lock() {
  const std::string name = path_ + "/lock";
  for (;;) {
    lock_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock_ < 0) throw Error(text("offload.nvme_dir: cannot create ", name, ": ", std::strerror(errno)));
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      ::close(lock_);
      if (reason == EWOULDBLOCK) {
        throw Error(
            text("offload.nvme_dir: ", path_, " is in use by another run; give each run a directory of its own"));
      }
      throw Error(text("offload.nvme_dir: cannot lock ", name, ": ", std::strerror(reason)));
    }
    struct stat ours {};
    if (::fstat(lock_, &ours) == 0 && ours.st_nlink > 0) return;
    ::close(lock_);  // its run ended and removed it between our open and our lock
  }
}

void DiskDirectory::sweep() const {
  std::uintmax_t bytes = 0, files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (name == "lock") continue;
    if (!entry.is_regular_file() || !name.ends_with(suffix)) {
      throw Error(text("offload.nvme_dir: ", entry.path().string(),
                       " is none of this program's files; choose a directory of its own, or remove it"));
    }
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    if (entry.path().filename() == "lock") continue;
    bytes += entry.file_size();
    ++files;
    fs::remove(entry.path());
  }
  if (files)
    log_warning("offload.nvme_dir: removed ", files, " files (", bytes, " bytes) that an earlier run left in ", path_);
}

DiskDirectory::~DiskDirectory() {
  ::unlink((path_ + "/lock").c_str());
  ::rmdir(path_.c_str());  // stays when files are left in it
  ::close(lock_);
}

}  // namespace zero
