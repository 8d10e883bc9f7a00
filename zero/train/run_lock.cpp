#include "zero/train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "comm/error.h"

namespace zero {

// The directory itself is locked: no file is left behind, and the lock ends with the process.
RunLock::RunLock(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw Error("job.output_dir = \"" + directory + "\" cannot be made: " + error.message());
  file_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file_ < 0) throw Error("job.output_dir = \"" + directory + "\" cannot be opened: " + std::strerror(errno));
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(file_);
  throw InputError("job.output_dir = \"" + directory + "\" is in use by a run that goes on: wait for its end, or name another directory");
}

RunLock::~RunLock() { ::close(file_); }

}  // namespace zero
