#include "offload/disk/disk_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/lookup.h"
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
    if (::fstat(lock_, &ours) != 0) {
      const int reason = errno;
      ::close(lock_);
      throw Error(text("offload.nvme_dir: cannot look at ", name, ": ", std::strerror(reason)));
    }
    if (ours.st_nlink > 0) return;
    ::close(lock_);  // its run ended and removed it between our open and our lock
  }
}

void DiskDirectory::sweep() const {
  std::int64_t bytes = 0, files = 0;
  std::vector<std::string> left = names_in(path_);
  std::erase(left, "lock");
  for (const std::string& name : left)
    if (!is_file(path_ + "/" + name) || !name.ends_with(suffix))
      throw Error(text("offload.nvme_dir: ", path_, "/", name,
                       " is none of this program's files; choose a directory of its own, or remove it"));
  for (const std::string& name : left) {
    const std::string path = path_ + "/" + name;
    bytes += facts_of(path).bytes;
    ++files;
    if (::unlink(path.c_str()) != 0)
      throw Error(text("offload.nvme_dir: cannot remove ", path, ": ", std::strerror(errno)));
  }
  if (files)
    log_warning("offload.nvme_dir: removed ", files, " files (", bytes, " bytes) that an earlier run left in ", path_);
}

DiskDirectory::~DiskDirectory() {
  ::unlink((path_ + "/lock").c_str());
  ::rmdir(path_.c_str());  // fails if files are left
  ::close(lock_);
}

}  // namespace zero
