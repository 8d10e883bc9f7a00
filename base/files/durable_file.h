#pragma once
// DurableFile: a new file that is synced once all data are written. A failed call is not retried: after a failed fsync
// the system may mark pages clean that were never written (Rebello et al., ATC 2020).
#include <cstdint>
#include <string>

#include "base/files/file_calls.h"

namespace zero {

class DurableFile {
 public:
  static constexpr std::int64_t block = 4096;

  /// Writes through the page cache, in chunks of any size. `mode` holds the permissions before the umask.
  struct Buffered {
    unsigned mode = 0644;
  };
  /// Writes past the page cache if the file system can. Data are aligned to `block`, and sizes are multiples of it. The
  /// disk reserves all `bytes` first.
  struct Direct {
    std::int64_t bytes = 0;
  };

  /// Every member throws Error "PATH: cannot be WHAT: REASON; REMEDY". The constructors also throw it if the file
  /// exists.
  DurableFile(FileCalls& calls, const std::string& path, Buffered way);
  DurableFile(FileCalls& calls, const std::string& path, Direct way);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  const std::string& path() const { return path_; }
  void append(const void* from, std::int64_t bytes);
  /// Overwrites appended data.
  void replace(const void* from, std::int64_t bytes, std::int64_t offset);
  /// Syncs and closes.
  void finish();

 private:
  FileCalls& calls_;
  std::string path_;
  std::int64_t unit_ = 1;  // writes are multiples of this many bytes
  int file_ = -1;
  std::int64_t written_ = 0;
};

}  // namespace zero
