#include "base/file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {

namespace {

constexpr std::int64_t io_piece = 1 << 30;  // Linux moves a little less than 2^31 bytes a call
constexpr std::string_view temporary_mark = ".tmp-";
constexpr std::size_t random_digits = 16;

std::int64_t written_at(const struct stat& status) {
  return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

std::string random_name(const std::string& path) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    throw Error(path + ": the system gives no random number for a temporary name");
  char digits[random_digits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return path + std::string(temporary_mark) + digits;
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
  auto* place = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, place, static_cast<std::size_t>(std::min(bytes, io_piece)), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(text(path_, ": cannot be read at byte ", offset, ": ", std::strerror(errno)));
    if (got == 0)
      throw InputError(
          text(path_, ": ends at byte ", offset, ", ", bytes, " bytes before it should; was it cut short?"));
    place += got;
    offset += got;
    bytes -= got;
  }
}

// O_EXCL makes the file or fails: what lies under the name already, a link among it, is never written through.
NewFile::NewFile(const std::string& path, unsigned mode) : path_(path), temporary_(random_name(path)) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
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

void NewFile::replace(const void* from, std::int64_t bytes, std::int64_t offset) {
  const auto* place = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(descriptor_, place, static_cast<std::size_t>(std::min(bytes, io_piece)), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("cannot be written");
    place += put;
    offset += put;
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

bool is_unpublished(const std::string& name) {
  if (name.size() < temporary_mark.size() + random_digits) return false;
  const std::string_view digits = std::string_view(name).substr(name.size() - random_digits);
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         std::string_view(name).substr(0, name.size() - random_digits).ends_with(temporary_mark);
}

}  // namespace zero
