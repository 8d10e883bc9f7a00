#pragma once
// File: positioned reads that fail cleanly on a truncated file (a mapped file would end the process with SIGBUS).
#include <cstdint>
#include <memory>
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// A regular file, open for reading. A call that fails for a transient reason is retried (base/files/lookup.h).
class File {
 public:
  /// Throws InputError if the file cannot be opened or is not a regular file. `calls` outlives the file.
  static File open(const std::string& path);
  static File open(const std::string& path, FileCalls& calls, Links links = Links::followed);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  std::int64_t size() const { return facts_.bytes; }  // when it was opened
  unsigned owner() const { return facts_.owner; }
  /// Its permissions, without group permissions if this process is not in the group.
  unsigned mode() const;
  /// True if its size or modification time has changed since it was opened.
  bool changed() const;

  /// Reads exactly `bytes` bytes from `offset`. Throws InputError if the file ends before, also if it shrank since it
  /// was opened.
  void read_at(void* to, std::int64_t bytes, std::int64_t offset) const;
  /// Reads up to `bytes` bytes from `offset` and returns their number. Throws InputError if they cannot be read.
  std::int64_t read_up_to(void* to, std::int64_t bytes, std::int64_t offset) const;

 private:
  File(std::string path, std::shared_ptr<FileCalls> calls, Links links);
  std::string path_;
  std::shared_ptr<FileCalls> calls_;
  int descriptor_;
  FileFacts facts_;
};

}  // namespace zero
