#include "offload/disk/disk_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "offload/disk/disk_directory.h"

namespace zero {
namespace {

std::string free_bytes(int descriptor) {
  struct statvfs system {};
  if (::fstatvfs(descriptor, &system) != 0) return "an unknown number of";
  return text(static_cast<std::uint64_t>(system.f_bavail) * system.f_frsize);
}

}  // namespace

DiskFile::DiskFile(const DiskDirectory& directory, const std::string& name, std::int64_t bytes)
    : path_(directory.path() + "/" + name + DiskDirectory::suffix), bytes_(bytes) {
  ZERO_CHECK(bytes > 0 && bytes % block == 0, text("a disk file of ", bytes, " bytes"));
  constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  descriptor_ = ::open(path_.c_str(), flags | O_DIRECT, 0600);
  direct_ = descriptor_ >= 0;
  if (!direct_ && errno == EINVAL) {
    ::unlink(path_.c_str());  // some systems create the file before they reject the flag
    descriptor_ = ::open(path_.c_str(), flags, 0600);
  }
  if (descriptor_ < 0) throw Error(text("offload.nvme_dir: cannot create ", path_, ": ", std::strerror(errno)));
  const std::string room = free_bytes(descriptor_);
  if (const int reason = ::posix_fallocate(descriptor_, 0, bytes); reason != 0) {
    ::close(descriptor_);
    ::unlink(path_.c_str());
    if (reason == ENOSPC || reason == EFBIG || reason == EDQUOT) {
      throw Error(text("offload.nvme_dir: the disk is full: ", path_, " needs ", bytes, " bytes, ", room,
                       " are free; free some, or choose another directory"));
    }
    throw Error(text("offload.nvme_dir: cannot allocate ", bytes, " bytes for ", path_, ": ", std::strerror(reason)));
  }
}

DiskFile::~DiskFile() {
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

void DiskFile::check_intact() const {
  struct stat now {};
  if (::fstat(descriptor_, &now) != 0) throw Error(text(path_, ": ", std::strerror(errno)));
  if (now.st_nlink == 0) throw Error(text(path_, " was removed while in use; resume from the last checkpoint"));
  if (now.st_size != bytes_) {
    throw Error(text(path_, " was cut from ", bytes_, " to ", now.st_size,
                     " bytes while in use; resume from the last checkpoint"));
  }
}

}  // namespace zero
