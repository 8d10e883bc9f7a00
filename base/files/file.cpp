#include "base/files/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/files/transfer.h"
#include "base/log.h"

namespace zero {

namespace {

std::int64_t written_at(const struct stat& status) {
  return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

}  // namespace

File File::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a fifo must not hang the job
  if (descriptor < 0) throw InputError(text(path, ": cannot be read: ", std::strerror(errno)));
  return {path, descriptor};
}

File::File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw InputError(text(path_, ": is no regular file"));
  }
  size_ = status.st_size;
  written_ = written_at(status);
  const bool for_all = status.st_mode & S_IROTH, own_group = status.st_gid == ::getegid();
  mode_ = status.st_mode & (for_all || own_group ? 0666 : 0600);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      written_(other.written_),
      mode_(other.mode_) {}
File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool File::changed() const {
  struct stat status {};
  return ::fstat(descriptor_, &status) != 0 || status.st_size != size_ || written_at(status) != written_;
}

void File::read_at(void* to, std::int64_t bytes, std::int64_t offset) const {
  FileCalls calls;
  const Transfer got = read_all(calls, descriptor_, to, bytes, offset);
  if (got.moved == bytes) return;
  const std::int64_t end = offset + got.moved;
  if (got.reason) throw InputError(text(path_, ": cannot be read at byte ", end, ": ", std::strerror(got.reason)));
  throw InputError(
      text(path_, ": ends at byte ", end, ", ", bytes - got.moved, " bytes before it should; was it cut short?"));
}

}  // namespace zero
