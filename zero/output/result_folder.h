#pragma once
// ResultFolder: a folder that a model or an adapter is being written to.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/files/file_calls.h"

namespace zero {

/// Unless finished, a folder that was missing or empty becomes so again. One that held a result keeps it.
class ResultFolder {
 public:
  /// Only looks at the folder; InputError when it cannot be looked at.
  explicit ResultFolder(std::string path, std::shared_ptr<FileCalls> calls = std::make_shared<FileCalls>());
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;
  ~ResultFolder();

  /// Makes it where it is missing. Error when that or the mark fails.
  void mark();
  /// The result is whole: removes the files of a former one that were not written anew. Error when one cannot be
  /// removed.
  void finish();

 private:
  using Stamp = std::pair<std::uint64_t, std::int64_t>;  // inode, nanoseconds of the last writing
  std::map<std::string, Stamp> files() const;

  std::string path_;
  std::shared_ptr<FileCalls> calls_;
  bool existed_ = false, was_empty_ = false, finished_ = false;
  std::map<std::string, Stamp> former_;  // of a marked folder
};

}  // namespace zero
