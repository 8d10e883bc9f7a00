#include "models/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "comm/error.h"
#include "comm/log.h"

namespace zero {

constexpr std::int64_t io_piece = 1 << 30;  // Linux moves a little less than 2^31 bytes a call

File File::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a fifo must not hang the job
  if (descriptor < 0) throw InputError(text(path, ": cannot be read: ", std::strerror(errno)));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw InputError(text(path, ": is no regular file"));
  }
  return {path, descriptor, status.st_size};
}

File::File(std::string path, int descriptor, std::int64_t size) : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}
File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void File::read_at(void* to, std::int64_t bytes, std::int64_t offset) const {
  auto* place = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, place, static_cast<std::size_t>(std::min(bytes, io_piece)), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(text(path_, ": cannot be read at byte ", offset, ": ", std::strerror(errno)));
    if (got == 0) throw InputError(text(path_, ": ends at byte ", offset, ", ", bytes, " bytes before it should; was it cut short?"));
    place += got;
    offset += got;
    bytes -= got;
  }
}

NewFile::NewFile(const std::string& path) : path_(path), temporary_(text(path, ".tmp-", ::getpid())) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("cannot be made");
}

NewFile::~NewFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void NewFile::append(const void* from, std::int64_t bytes) {
  const auto* place = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = ::write(descriptor_, place, static_cast<std::size_t>(std::min(bytes, io_piece)));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("cannot be written");
    place += put;
    bytes -= put;
  }
}

void NewFile::publish() {
  ZERO_CHECK(descriptor_ >= 0, path_ + " was published before");
  if (::fsync(descriptor_) != 0) fail("cannot be synced");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be renamed");
  ::close(std::exchange(descriptor_, -1));
  const auto folder = std::filesystem::absolute(path_).parent_path();
  const int parent = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent < 0) return;  // the rename stands; only its durability across a power cut is left to the system
  ::fsync(parent);
  ::close(parent);
}

void NewFile::fail(const char* what) const {
  throw Error(text(path_, ": ", what, ": ", std::strerror(errno), " (temporary name ", temporary_, ")"));
}

}  // namespace zero
