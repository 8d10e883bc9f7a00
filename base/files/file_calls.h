#pragma once
// FileCalls: the system calls that write files, and read checkpoints, in the system's own terms (-1 and errno). The
// seam between what is written and the disk: tests count the calls, make any of them fail, stop the world at one, or
// take the power away.
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

class FileCalls {
 public:
  virtual ~FileCalls() = default;

  virtual int make_directory(const std::string& path);
  /// A new file, open for writing; past the page cache where `direct` is asked for and the file system can. EEXIST
  /// where the name is taken, be it by a link: nothing is ever written through one. `mode`: less what the umask takes.
  virtual int create(const std::string& path, unsigned mode, bool direct);
  /// For writing at the end, wherever that is by then; one that is missing is made.
  virtual int open_to_append(const std::string& path);
  virtual int open(const std::string& path);  // for reading
  virtual std::int64_t size(int file);
  /// Names in a directory, in no order; none where there is no such directory.
  virtual std::vector<std::string> list(const std::string& path);
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
  /// A file, or an empty directory.
  virtual int remove(const std::string& path);
};

/// Throws Error "PATH: cannot be WHAT: REASON; REMEDY" of an errno.
[[noreturn]] void fail_call(const std::string& path, const std::string& what, int reason = errno);

/// The same unless the call's result is good.
inline void check_call(std::int64_t result, const std::string& path, const std::string& what) {
  if (result < 0) fail_call(path, what);
}

}  // namespace zero
