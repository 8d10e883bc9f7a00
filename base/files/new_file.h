#pragma once
// NewFile: a file that appears under its name only when it is complete and durable. A reader sees the old file or the
// new.
#include <cstdint>
#include <memory>
#include <string>

#include "base/files/durable_file.h"
#include "base/files/file_calls.h"

namespace zero {

/// It is written as PATH.tmp-RANDOM in the target's folder. Nobody can create a file of that name beforehand. Unless
/// published it is removed again.
class NewFile {
 public:
  /// Every member throws Error "PATH.tmp-RANDOM: cannot be WHAT: REASON; REMEDY". `mode`: permissions before the umask.
  explicit NewFile(const std::string& path, unsigned mode = 0644,
                   std::shared_ptr<FileCalls> calls = std::make_shared<FileCalls>());
  NewFile(const std::string& path, FileCalls& calls) : NewFile(path, 0644, unowned(calls)) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  const std::string& path() const { return path_; }
  void append(const void* from, std::int64_t bytes) { file_.append(from, bytes); }
  /// Overwrites appended data.
  void replace(const void* from, std::int64_t bytes, std::int64_t offset) { file_.replace(from, bytes, offset); }
  /// Syncs the content, renames the file to its name and syncs the folder. Nothing may be appended afterwards.
  void publish();

 private:
  std::shared_ptr<FileCalls> calls_;
  std::string path_;
  DurableFile file_;  // under its temporary name
  bool published_ = false;
};

/// True for the name of a file that a NewFile left behind because its process was killed.
bool is_unpublished(const std::string& name);

}  // namespace zero
