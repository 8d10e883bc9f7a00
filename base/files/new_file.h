#pragma once
// NewFile: a file that appears under its name only when it is whole and durable. A reader sees the old file or the new.
#include <cstdint>
#include <memory>
#include <string>

#include "base/files/durable_file.h"
#include "base/files/file_calls.h"

namespace zero {

/// Written beside its target as PATH.tmp-RANDOM, a name that nobody can put something under beforehand. Unless
/// published it is removed again.
class NewFile {
 public:
  /// Error "PATH.tmp-RANDOM: cannot be WHAT: REASON; REMEDY" from every member. `mode`: permissions, less what the
  /// umask takes.
  explicit NewFile(const std::string& path, unsigned mode = 0644,
                   std::shared_ptr<FileCalls> calls = std::make_shared<FileCalls>());
  NewFile(const std::string& path, FileCalls& calls) : NewFile(path, 0644, unowned(calls)) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  const std::string& path() const { return path_; }
  void append(const void* from, std::int64_t bytes) { file_.append(from, bytes); }
  /// Writes over what was appended.
  void replace(const void* from, std::int64_t bytes, std::int64_t offset) { file_.replace(from, bytes, offset); }
  /// Syncs the content, renames it to its name and syncs the folder. Nothing may be appended afterwards.
  void publish();

 private:
  std::shared_ptr<FileCalls> calls_;
  std::string path_;
  DurableFile file_;  // under its temporary name
  bool published_ = false;
};

/// Whether a file of this name is what a NewFile left behind whose process was killed.
bool is_unpublished(const std::string& name);

}  // namespace zero
