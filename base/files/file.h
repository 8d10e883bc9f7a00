#pragma once
// File: positioned reads. A truncated file throws an exception, where a mapped one would kill the process (SIGBUS).
#include <cstdint>
#include <memory>
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// A regular file, open for reading. A call that fails for a transient reason is retried (base/files/lookup.h).
class File {
 public:
  /// Throws InputError if the file cannot be opened or is not a regular file. `calls` must outlive the file.
  static File open(const std::string& path);
  static File open(const std::string& path, FileCalls& calls, Links links = Links::followed);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  std::int64_t size() const { return facts_.bytes; }  // when it was opened
  unsigned owner() const { return facts_.owner; }
  /// Returns the file's permissions. Returns only the owner's if others may not read the file and its group is not this
  /// process's.
  unsigned mode() const;
  /// True if the file's size or modification time has changed since it was opened.
  bool changed() const;

  /// Reads exactly `bytes` bytes from `offset`. Throws InputError if the file ends earlier, even if it has shrunk since
  /// it was opened.
  void read_at(void* to, std::int64_t bytes, std::int64_t offset) const;
  /// Reads up to `bytes` bytes from `offset` and returns the number of bytes read. Throws InputError if a read fails.
  std::int64_t read_up_to(void* to, std::int64_t bytes, std::int64_t offset) const;

 private:
  File(std::string path, std::shared_ptr<FileCalls> calls, Links links);
  std::string path_;
  std::shared_ptr<FileCalls> calls_;
  int descriptor_;
  FileFacts facts_;
};

}  // namespace zero
