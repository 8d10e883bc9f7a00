#include "base/files/file_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

const char* remedy_for(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space there";
    case EIO:
      return "; the disk fails: look at the system's log";
    case EROFS:
    case EACCES:
    case EPERM:
      return "; make the directory writable";
    case ENOENT:
    case ENOTDIR:
      return "; its folder must stay in place, and all nodes of a run must share it";
    default:
      return "";
  }
}

FileFacts::Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileFacts::Kind::file;
  if (S_ISDIR(mode)) return FileFacts::Kind::directory;
  return S_ISLNK(mode) ? FileFacts::Kind::link : FileFacts::Kind::other;
}

FileFacts facts_from(const struct stat& status) {
  return {kind_of(status.st_mode), status.st_mode & 07777,
          status.st_uid,           status.st_gid,
          status.st_size,          status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec,
          status.st_dev,           status.st_ino};
}

}  // namespace

int FileCalls::make_directory(const std::string& path) { return ::mkdir(path.c_str(), 0755); }

int FileCalls::create(const std::string& path, unsigned mode, bool direct) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const int file = ::open(path.c_str(), flags | (direct ? O_DIRECT : 0), mode);
  if (file >= 0 || !direct || errno != EINVAL) return file;
  ::unlink(path.c_str());  // some systems create the file before they reject the flag
  return ::open(path.c_str(), flags, mode);
}

int FileCalls::open_to_append(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

int FileCalls::open(const std::string& path, Links links) {
  const int follow = links == Links::followed ? 0 : O_NOFOLLOW;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | follow);  // opening a fifo must not block
  if (file >= 0) ::posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
  return file;
}

int FileCalls::look(const std::string& path, Links links, FileFacts& facts) {
  struct stat status {};
  const int result = links == Links::followed ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status);
  if (result == 0) facts = facts_from(status);
  return result;
}

int FileCalls::look(int file, FileFacts& facts) {
  struct stat status {};
  const int result = ::fstat(file, &status);
  if (result == 0) facts = facts_from(status);
  return result;
}

int FileCalls::list(const std::string& path, std::vector<std::string>& names) {
  names.clear();
  DIR* directory = ::opendir(path.c_str());
  if (!directory) return -1;
  errno = 0;  // readdir() returns null at the end too, and sets errno on errors only
  while (const dirent* entry = ::readdir(directory)) {
    if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int reason = errno;
  ::closedir(directory);
  errno = reason;
  return reason == 0 ? 0 : -1;
}

int FileCalls::allocate(int file, std::int64_t bytes) {
  const int result = bytes > 0 ? ::fallocate(file, 0, 0, bytes) : 0;
  return result < 0 && errno != ENOSPC && errno != EDQUOT && errno != EFBIG && errno != EIO ? 0 : result;
}

ssize_t FileCalls::write(int file, const void* data, std::size_t bytes, std::int64_t offset) {
  return ::pwrite(file, data, bytes, offset);
}
ssize_t FileCalls::read(int file, void* data, std::size_t bytes, std::int64_t offset) {
  return ::pread(file, data, bytes, offset);
}
int FileCalls::truncate(int file, std::int64_t bytes) { return ::ftruncate(file, bytes); }
int FileCalls::sync(int file) { return ::fsync(file); }
int FileCalls::close(int file) { return ::close(file); }

int FileCalls::sync_directory(const std::string& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return -1;
  const int result = ::fsync(directory), reason = errno;
  ::close(directory);
  errno = reason;
  return result;
}

int FileCalls::rename(const std::string& from, const std::string& to) { return std::rename(from.c_str(), to.c_str()); }
int FileCalls::exchange(const std::string& one, const std::string& other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
}
int FileCalls::remove(const std::string& path) { return std::remove(path.c_str()); }
void FileCalls::pause(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

// The last holder may have removed the directory between open and lock: the name then refers to another one.
int FileCalls::lock_directory(const std::string& path) {
  for (;;) {
    const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return -1;
    struct stat held {
    }, named{};
    const bool locked = ::flock(directory, LOCK_EX | LOCK_NB) == 0;
    const bool looked = locked && ::fstat(directory, &held) == 0 && ::stat(path.c_str(), &named) == 0;
    if (looked && held.st_ino == named.st_ino && held.st_dev == named.st_dev) return directory;
    const int reason = errno;
    ::close(directory);
    errno = reason;
    if (!looked) return -1;
  }
}

void fail_call(const std::string& path, const std::string& what, int reason) {
  throw Error(text(path, ": cannot be ", what, ": ", std::strerror(reason), remedy_for(reason)));
}

}  // namespace zero
