#include "comm/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

/// Tries names until one is free: another container may share /dev/shm but not process numbers.
int create_file(std::string& name) {
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    name = text("/zero-", getpid(), "-", std::hex, random());
    const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

Error failure(const char* what, int code, std::size_t bytes) {
  return Error(text(what, " of ", bytes >> 10, " KiB in /dev/shm failed (", std::strerror(code),
                    "); give the container more with --shm-size, or mount a larger tmpfs on /dev/shm"));
}

}  // namespace

SharedSegment SharedSegment::create(std::size_t bytes) {
  std::string name;
  const int file = create_file(name);
  if (file < 0) throw failure("making shared memory", errno, bytes);
  const int code = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (code != 0) {
    close(file);
    shm_unlink(name.c_str());
    throw failure("allocation of shared memory", code, bytes);
  }
  return SharedSegment(std::move(name), file, bytes, true);
}

SharedSegment SharedSegment::open(const std::string& name, std::size_t bytes) {
  const int file = shm_open(name.c_str(), O_RDWR, 0600);
  if (file < 0) throw failure("opening shared memory", errno, bytes);
  return SharedSegment(name, file, bytes, false);
}

SharedSegment::SharedSegment(std::string name, int file, std::size_t bytes, bool owner)
    : name_(std::move(name)), bytes_(bytes), owner_(owner) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  const int code = errno;
  close(file);
  if (memory == MAP_FAILED) {
    unlink();
    throw failure("mapping shared memory", code, bytes);
  }
  data_ = static_cast<std::byte*>(memory);
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : name_(std::move(other.name_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      owner_(std::exchange(other.owner_, false)) {}

SharedSegment::~SharedSegment() {
  unlink();
  if (data_) munmap(data_, bytes_);
}

void SharedSegment::unlink() {
  if (std::exchange(owner_, false)) shm_unlink(name_.c_str());
}

}  // namespace zero
