#pragma once
// File: positioned reads that fail cleanly on a truncated file (a mapped file would end the process with SIGBUS).
#include <cstdint>
#include <string>

namespace zero {

/// A regular file, open for reading.
class File {
 public:
  /// InputError when it cannot be opened or is no regular file.
  static File open(const std::string& path);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }  // when it was opened
  unsigned mode() const { return mode_; }      // its permissions, without those of a group that this process is not of
  /// Whether its size or the time of its last writing are others than when it was opened.
  bool changed() const;

  /// Exactly `bytes` bytes from `offset`; InputError when the file ends before, also when it shrank since it was
  /// opened.
  void read_at(void* to, std::int64_t bytes, std::int64_t offset) const;

 private:
  File(std::string path, int descriptor);
  std::string path_;
  int descriptor_;
  std::int64_t size_ = 0, written_ = 0;  // the latter in nanoseconds
  unsigned mode_ = 0;
};

}  // namespace zero
