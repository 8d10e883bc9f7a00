#include "zero/fetch/partial_file.h"

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files/transfer.h"
#include "base/log.h"

namespace zero {

PartialFile::PartialFile(FileCalls& calls, std::string path, const HubFile& file)
    : calls_(calls), path_(std::move(path)), file_(file), hash_(file), descriptor_(calls_.open_to_append(path_)) {
  check_call(descriptor_, path_, "opened");
  try {
    FileFacts facts;
    check_call(calls_.look(descriptor_, facts), path_, "looked at");
    if (facts.bytes > file_.bytes) {
      restart();
    } else {
      hash_.add_file(calls_, path_, facts.bytes);
      bytes_ = facts.bytes;
    }
  } catch (...) {
    close();
    throw;
  }
}

PartialFile::~PartialFile() {
  if (descriptor_ < 0) return;
  if (bytes_ == 0) calls_.remove(path_);
  close();
}

void PartialFile::begin(std::int64_t offset) {
  if (offset == 0 && bytes_ > 0) restart();
  if (offset != bytes_)
    throw Error(
        text(file_.path, ": the server sends bytes from ", offset, " on, and was asked for those from ", bytes_));
}

void PartialFile::add(std::string_view bytes) {
  const auto count = static_cast<std::int64_t>(bytes.size());
  if (count > file_.bytes - bytes_)
    throw Error(text(file_.path, ": the server sends more than the ", file_.bytes, " bytes that the hub lists"));
  const Transfer put = write_all(calls_, descriptor_, bytes.data(), count, bytes_);
  if (put.moved != count) fail_call(path_, text("written at byte ", bytes_ + put.moved), put.reason);
  hash_.add(bytes.data(), bytes.size());
  bytes_ += count;
  grown_(bytes_);
}

void PartialFile::restart() {
  check_call(calls_.truncate(descriptor_, 0), path_, "truncated");
  hash_ = ContentHash(file_);
  bytes_ = 0;
  grown_(bytes_);
}

void PartialFile::publish(const std::string& path) {
  FileFacts facts;
  check_call(calls_.look(descriptor_, facts), path_, "looked at");
  if (facts.bytes != bytes_)
    throw Error(
        text(path_, ": has ", facts.bytes, " bytes where ", bytes_, " were written: another process writes it"));
  check_call(calls_.sync(descriptor_), path_, "synced");
  check_call(calls_.close(std::exchange(descriptor_, -1)), path_, "closed");
  check_call(calls_.rename(path_, path), path_, "renamed to " + path);
  // The rename is done. A failed sync of the folder only leaves durability across a power cut to the system.
  calls_.sync_directory(std::filesystem::path(path).parent_path().string());
}

void PartialFile::discard() {
  close();
  check_call(calls_.remove(path_), path_, "removed");
}

void PartialFile::close() {
  if (descriptor_ >= 0) calls_.close(std::exchange(descriptor_, -1));
}

}  // namespace zero
