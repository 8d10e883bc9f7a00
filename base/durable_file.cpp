#include "base/durable_file.h"

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {

DurableFile::DurableFile(FileCalls& calls, const std::string& path, std::int64_t bytes) : calls_(calls), path_(path) {
  file_ = calls_.create(path_, /*direct=*/true);
  check_call(file_, path_, "made");
  try {
    check_call(calls_.allocate(file_, bytes), path_, text("given ", bytes, " bytes of the disk"));
  } catch (...) {
    calls_.close(file_);
    throw;
  }
}

DurableFile::~DurableFile() {
  if (file_ >= 0) calls_.close(file_);
}

void DurableFile::append(const std::byte* data, std::int64_t bytes) {
  ZERO_CHECK(bytes % block == 0, path_ + ": whole blocks are written");
  for (std::int64_t done = 0; done < bytes;) {
    const ssize_t moved = calls_.write(file_, data + done, static_cast<std::size_t>(bytes - done), written_ + done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = EIO;
    if (moved <= 0) fail_call(path_, text("written at byte ", written_ + done));
    // Direct writes go on from a block's begin: a part of one is written again.
    const std::int64_t whole = moved / block * block;
    if (whole == 0) {
      errno = ENOSPC;  // less than a block was moved: there is no room for more
      fail_call(path_, text("written at byte ", written_ + done));
    }
    done += whole;
  }
  written_ += bytes;
}

void DurableFile::finish() {
  check_call(calls_.sync(file_), path_, "synced");
  check_call(calls_.close(std::exchange(file_, -1)), path_, "closed");
}

}  // namespace zero
