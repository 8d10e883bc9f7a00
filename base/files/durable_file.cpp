#include "base/files/durable_file.h"

#include <utility>

#include "base/error.h"
#include "base/files/transfer.h"
#include "base/log.h"

namespace zero {

DurableFile::DurableFile(FileCalls& calls, const std::string& path, Buffered way)
    : calls_(calls), path_(path), file_(calls.create(path, way.mode, /*direct=*/false)) {
  check_call(file_, path_, "made");
}

DurableFile::DurableFile(FileCalls& calls, const std::string& path, Direct way)
    : calls_(calls), path_(path), unit_(block), file_(calls.create(path, 0644, /*direct=*/true)) {
  check_call(file_, path_, "made");
  try {
    check_call(calls_.allocate(file_, way.bytes), path_, text("given ", way.bytes, " bytes of the disk"));
  } catch (...) {
    calls_.close(file_);
    throw;
  }
}

DurableFile::~DurableFile() {
  if (file_ >= 0) calls_.close(file_);
}

void DurableFile::append(const void* from, std::int64_t bytes) {
  replace(from, bytes, written_);
  written_ += bytes;
}

void DurableFile::replace(const void* from, std::int64_t bytes, std::int64_t offset) {
  ZERO_CHECK(bytes % unit_ == 0 && offset % unit_ == 0, path_ + ": whole blocks are written");
  const Transfer put = write_all(calls_, file_, from, bytes, offset, unit_);
  if (put.moved == bytes) return;
  fail_call(path_, text("written at byte ", offset + put.moved), put.reason);
}

void DurableFile::finish() {
  check_call(calls_.sync(file_), path_, "synced");
  check_call(calls_.close(std::exchange(file_, -1)), path_, "closed");
}

}  // namespace zero
