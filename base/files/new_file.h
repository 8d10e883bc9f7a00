#pragma once
// NewFile: a file that appears under its name only when it is complete and durable. A reader sees either the old file
// or the new one.
#include <cstdint>
#include <memory>
#include <string>

#include "base/files/durable_file.h"
#include "base/files/file_calls.h"

namespace zero {

/// The file is written as PATH.tmp-RANDOM in the target's folder. Nobody can guess that name and create it beforehand.
/// The file is removed unless it is published.
class NewFile {
 public:
  /// Every member throws Error "PATH.tmp-RANDOM: cannot be WHAT: REASON; REMEDY". `mode` holds the permissions before
  /// the umask.
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
  /// Syncs the content, renames the file to PATH and syncs the folder. Nothing may be appended afterwards.
  void publish();

 private:
  std::shared_ptr<FileCalls> calls_;
  std::string path_;
  DurableFile file_;  // under its temporary name
  bool published_ = false;
};

/// True if the name belongs to a temporary file that a NewFile left behind because its process was killed.
bool is_unpublished(const std::string& name);

}  // namespace zero
