#pragma once
// File: positioned reads that fail cleanly on a truncated file (a mapped file would end the process with SIGBUS).
#include <cstdint>
#include <memory>
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// A regular file, open for reading. A call that fails for a reason that may pass is made again (base/files/lookup.h).
class File {
 public:
  /// InputError when it cannot be opened or is no regular file. `calls` outlive the file.
  static File open(const std::string& path);
  static File open(const std::string& path, FileCalls& calls, Links links = Links::followed);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  std::int64_t size() const { return facts_.bytes; }  // when it was opened
  unsigned owner() const { return facts_.owner; }
  /// Its permissions, without those of a group that this process is not of.
  unsigned mode() const;
  /// Whether its size or the time of its last writing are others than when it was opened.
  bool changed() const;

  /// Exactly `bytes` bytes from `offset`; InputError when the file ends before, also when it shrank since it was
  /// opened.
  void read_at(void* to, std::int64_t bytes, std::int64_t offset) const;
  /// As many of `bytes` bytes from `offset` as the file has there; InputError when they cannot be read.
  std::int64_t read_up_to(void* to, std::int64_t bytes, std::int64_t offset) const;

 private:
  File(std::string path, std::shared_ptr<FileCalls> calls, Links links);
  std::string path_;
  std::shared_ptr<FileCalls> calls_;
  int descriptor_;
  FileFacts facts_;
};

}  // namespace zero
