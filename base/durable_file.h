#pragma once
// DurableFile: a new file, written front to back in aligned blocks and synced at its end. What fails once is not tried
// again: after a failed fsync the system may count pages as written that are not (Rebello et al., ATC 2020).
#include <cstdint>
#include <string>

#include "base/file_calls.h"

namespace zero {

class DurableFile {
 public:
  static constexpr std::int64_t block = 4096;

  /// Error, with the reason and a remedy, from every member.
  DurableFile(FileCalls& calls, const std::string& path, std::int64_t bytes);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  /// `data` is aligned to `block`, and `bytes` a multiple of it.
  void append(const std::byte* data, std::int64_t bytes);
  /// Syncs and closes.
  void finish();

 private:
  FileCalls& calls_;
  std::string path_;
  int file_ = -1;
  std::int64_t written_ = 0;
};

}  // namespace zero
