#pragma once
// Files as the readers and writers of the project use them: positioned reads that fail cleanly on a truncated file (a
// mapped file would end the process with SIGBUS), and new files that appear under their name only when they are whole.
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

/// A file that is written beside its target as PATH.tmp-RANDOM, a name that nobody can put something under beforehand.
/// Unless published it is removed again.
class NewFile {
 public:
  /// `mode`: permissions, less what the umask takes. Error when it cannot be made.
  explicit NewFile(const std::string& path, unsigned mode = 0644);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  const std::string& path() const { return path_; }
  void append(const void* from, std::int64_t bytes);
  /// Writes over what was appended.
  void replace(const void* from, std::int64_t bytes, std::int64_t offset);
  /// Syncs the content, renames it to its name and syncs the folder. Nothing may be appended afterwards.
  void publish();

 private:
  [[noreturn]] void fail(const char* what) const;
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// Whether a file of this name is what a NewFile left behind whose process was killed.
bool is_unpublished(const std::string& name);

}  // namespace zero
