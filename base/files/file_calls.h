#pragma once
// FileCalls: the system calls that look up, read and write files. They return the system's results (-1 and errno).
// Tests replace them to count calls, make one fail, stop at one, or simulate a power cut. Look up files through
// base/files/lookup.h, which distinguishes an error from a missing file.
#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero {

/// The file or folder under a path.
struct FileFacts {
  enum class Kind : std::uint8_t { absent, file, directory, link, other };
  Kind kind = Kind::absent;
  unsigned mode = 0;  // permissions
  unsigned owner = 0, group = 0;
  std::int64_t bytes = 0;
  std::int64_t written = 0;  // modification time, in nanoseconds
  std::uint64_t device = 0, inode = 0;
};

/// Says whether a path that ends in a link refers to the link's target (followed) or to the link itself (kept).
enum class Links : std::uint8_t { followed, kept };

class FileCalls {
 public:
  virtual ~FileCalls() = default;

  virtual int make_directory(const std::string& path);
  /// Creates a file and opens it for writing. If `direct` is set and the file system supports it, writes bypass the
  /// page cache. Fails with EEXIST if the name exists, even as a link: files are never written through links. `mode`
  /// holds the permissions before the umask.
  virtual int create(const std::string& path, unsigned mode, bool direct);
  /// Opens a file for appending (O_APPEND). Creates a missing file.
  virtual int open_to_append(const std::string& path);
  /// Opens a file for reading. Fails with ELOOP if links are kept and the path ends in one.
  virtual int open(const std::string& path, Links links = Links::followed);
  virtual int look(const std::string& path, Links links, FileFacts& facts);
  virtual int look(int file, FileFacts& facts);
  /// Replaces `names` with the names in a directory, in no particular order.
  virtual int list(const std::string& path, std::vector<std::string>& names);
  /// Reserves disk blocks, so that a full disk is noticed before anything is written. Does nothing if the file system
  /// cannot reserve blocks.
  virtual int allocate(int file, std::int64_t bytes);
  virtual ssize_t write(int file, const void* data, std::size_t bytes, std::int64_t offset);
  virtual ssize_t read(int file, void* data, std::size_t bytes, std::int64_t offset);
  virtual int truncate(int file, std::int64_t bytes);
  virtual int sync(int file);
  virtual int close(int file);
  virtual int sync_directory(const std::string& path);
  virtual int rename(const std::string& from, const std::string& to);
  /// Swaps two names on one file system atomically. Fails with EINVAL, ENOSYS or ENOTSUP if the file system cannot.
  virtual int exchange(const std::string& one, const std::string& other);
  /// Removes a file or an empty directory.
  virtual int remove(const std::string& path);
  /// Waits before a retry.
  virtual void pause(std::chrono::milliseconds time);
  /// Opens a directory and locks it (flock(2)). The lock ends with close() or with the process. Fails with EWOULDBLOCK
  /// if another holder has the lock, and with ENOLCK, ENOSYS or ENOTSUP if the file system has no locks.
  virtual int lock_directory(const std::string& path);
};

/// Wraps a FileCalls in a pointer that does not own it. The FileCalls must outlive the pointer.
inline std::shared_ptr<FileCalls> unowned(FileCalls& calls) { return {std::shared_ptr<void>(), &calls}; }

/// Throws Error "PATH: cannot be WHAT: REASON; REMEDY" for an errno.
[[noreturn]] void fail_call(const std::string& path, const std::string& what, int reason = errno);

/// Does the same if the call's result is -1.
inline void check_call(std::int64_t result, const std::string& path, const std::string& what) {
  if (result < 0) fail_call(path, what);
}

}  // namespace zero
