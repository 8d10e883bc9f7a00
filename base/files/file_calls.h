#pragma once
// FileCalls: the system calls that look at files, read them and write them, in the system's own terms (-1 and errno).
// The seam between the programs and the disk: tests count the calls, make any of them fail, stop the world at one, or
// take the power away. Look at files through base/files/lookup.h, which tells an error from an absence.
#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero {

/// What stands under a path.
struct FileFacts {
  enum class Kind : std::uint8_t { absent, file, directory, link, other };
  Kind kind = Kind::absent;
  unsigned mode = 0;  // permissions
  unsigned owner = 0, group = 0;
  std::int64_t bytes = 0;
  std::int64_t written = 0;  // the time of the last writing, in nanoseconds
  std::uint64_t device = 0, inode = 0;
};

/// Whether a path that ends in a link means the link or its target.
enum class Links : std::uint8_t { followed, kept };

class FileCalls {
 public:
  virtual ~FileCalls() = default;

  virtual int make_directory(const std::string& path);
  /// A new file, open for writing; past the page cache where `direct` is asked for and the file system can. EEXIST
  /// where the name is taken, be it by a link: nothing is ever written through one. `mode`: less what the umask takes.
  virtual int create(const std::string& path, unsigned mode, bool direct);
  /// For writing at the end, wherever that is by then; one that is missing is made.
  virtual int open_to_append(const std::string& path);
  /// For reading. ELOOP where links are kept and the path ends in one.
  virtual int open(const std::string& path, Links links = Links::followed);
  virtual int look(const std::string& path, Links links, FileFacts& facts);
  virtual int look(int file, FileFacts& facts);
  /// Replaces `names` by those in a directory, in no order.
  virtual int list(const std::string& path, std::vector<std::string>& names);
  /// Sets blocks aside, so that a full disk shows before anything is written. Does nothing where the file system
  /// cannot.
  virtual int allocate(int file, std::int64_t bytes);
  virtual ssize_t write(int file, const void* data, std::size_t bytes, std::int64_t offset);
  virtual ssize_t read(int file, void* data, std::size_t bytes, std::int64_t offset);
  virtual int truncate(int file, std::int64_t bytes);
  virtual int sync(int file);
  virtual int close(int file);
  virtual int sync_directory(const std::string& path);
  virtual int rename(const std::string& from, const std::string& to);
  /// Two names of one file system change places in one step. EINVAL, ENOSYS or ENOTSUP where the file system cannot.
  virtual int exchange(const std::string& one, const std::string& other);
  /// A file, or an empty directory.
  virtual int remove(const std::string& path);
  /// Waits before a call is made again.
  virtual void pause(std::chrono::milliseconds time);
  /// Opens a directory that no other holder has locked (flock(2)); the lock ends with close() or with the process.
  /// EWOULDBLOCK where another one holds it; ENOLCK, ENOSYS or ENOTSUP where the file system has no locks.
  virtual int lock_directory(const std::string& path);
};

/// For an owner that outlives the pointer.
inline std::shared_ptr<FileCalls> unowned(FileCalls& calls) { return {std::shared_ptr<void>(), &calls}; }

/// Throws Error "PATH: cannot be WHAT: REASON; REMEDY" of an errno.
[[noreturn]] void fail_call(const std::string& path, const std::string& what, int reason = errno);

/// The same unless the call's result is good.
inline void check_call(std::int64_t result, const std::string& path, const std::string& what) {
  if (result < 0) fail_call(path, what);
}

}  // namespace zero
