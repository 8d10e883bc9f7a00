#pragma once
// ResultFolder: a folder to which a model or adapter is written.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/files/file_calls.h"

namespace zero {

/// If finish() is not called, the destructor restores a folder that was missing or empty. A folder with an earlier
/// result keeps that result.
class ResultFolder {
 public:
  /// Only inspects the folder; throws InputError if that fails.
  explicit ResultFolder(std::string path, std::shared_ptr<FileCalls> calls = std::make_shared<FileCalls>());
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;
  ~ResultFolder();

  /// Creates the folder if it is missing, and marks it. Throws Error if either fails.
  void mark();
  /// Call it when the result is complete. Removes an earlier result's files that were not rewritten. Throws Error if
  /// one cannot be removed.
  void finish();

 private:
  using Stamp = std::pair<std::uint64_t, std::int64_t>;  // inode, modification time in nanoseconds
  std::map<std::string, Stamp> files() const;

  std::string path_;
  std::shared_ptr<FileCalls> calls_;
  bool existed_ = false, was_empty_ = false, finished_ = false;
  std::map<std::string, Stamp> former_;  // files of a marked folder
};

}  // namespace zero
