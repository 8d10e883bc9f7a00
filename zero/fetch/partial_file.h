#pragma once
// PartialFile: a file that is being fetched. It survives the end of the process, and a later fetch continues it.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/files/file_calls.h"
#include "zero/fetch/content_hash.h"
#include "zero/fetch/http_client.h"
#include "zero/fetch/listing.h"

namespace zero {

/// Hashes bytes as they arrive. The constructor hashes the bytes that an earlier process has left. Members throw Error
/// "PATH: cannot be WHAT: REASON; REMEDY" if the disk fails.
class PartialFile : public HttpBody {
 public:
  /// `path` is used for this content alone, by one process at a time.
  PartialFile(FileCalls& calls, std::string path, const HubFile& file);
  /// Leaves a partial file, but removes an empty one.
  ~PartialFile() override;
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  std::int64_t bytes() const { return bytes_; }
  /// Calls `grown` with the file's number of bytes after each change.
  void watch(std::function<void(std::int64_t)> grown) { grown_ = std::move(grown); }
  /// Continues at `offset`, or begins anew at 0, since a server may ignore the requested range. Throws Error for any
  /// other offset.
  void begin(std::int64_t offset) override;
  /// Throws Error if more bytes arrive than the file has.
  void add(std::string_view bytes) override;
  /// Drops all bytes.
  void restart();
  /// The hash of all bytes. Nothing may be added afterwards.
  std::string hash() { return hash_.finish(); }
  /// Syncs the file and renames it to `path`. A reader sees the complete file or none.
  void publish(const std::string& path);
  /// Removes the file.
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
