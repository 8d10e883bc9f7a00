#pragma once
// PartialFile: a file while it is fetched. It survives the end of the process and goes on from there.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/files/file_calls.h"
#include "zero/fetch/content_hash.h"
#include "zero/fetch/http_client.h"
#include "zero/fetch/listing.h"

namespace zero {

/// Hashes bytes as they arrive, and those of an earlier process when it is opened. Throws Error "PATH: cannot be WHAT:
/// REASON; REMEDY" for a disk that fails.
class PartialFile : public HttpBody {
 public:
  /// `path` is used for this content alone, by one process at a time.
  PartialFile(FileCalls& calls, std::string path, const HubFile& file);
  /// Leaves a partial file, but no empty one.
  ~PartialFile() override;
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  std::int64_t bytes() const { return bytes_; }
  /// Calls `grown` with the bytes that are there, after each change.
  void watch(std::function<void(std::int64_t)> grown) { grown_ = std::move(grown); }
  /// Continues at `offset`, or begins anew at 0: a server may ignore the range it was asked for. Error for another one.
  void begin(std::int64_t offset) override;
  /// Error for more bytes than the file has.
  void add(std::string_view bytes) override;
  /// Drops all bytes.
  void restart();
  /// The hash of all bytes. Nothing may be added afterwards.
  std::string hash() { return hash_.finish(); }
  /// Syncs it and gives it its name, which a reader sees whole or not at all.
  void publish(const std::string& path);
  /// Removes it.
  void discard();

 private:
  void close();

  FileCalls& calls_;
  std::string path_;
  HubFile file_;
  std::function<void(std::int64_t)> grown_ = [](std::int64_t) {};
  ContentHash hash_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
};

}  // namespace zero
