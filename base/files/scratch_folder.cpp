#include "base/files/scratch_folder.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"

extern char** environ;

namespace zero {
namespace {

namespace fs = std::filesystem;

// A removal fails while a dying program still writes, so retry.
char watch[] = "while read -r line; do :; done; for n in 1 2 3 4 5; do rm -rf -- \"$0\" && break; sleep 1; done";

fs::path parent_of(const ScratchOptions& options) {
  std::error_code error;
  const fs::path place = options.place.empty() ? fs::temp_directory_path(error) : fs::absolute(options.place, error);
  if (error) throw InputError("TMPDIR: is no folder for temporary files: " + error.message() + "; " + options.remedy);
  return fs::absolute(place);
}

/// Opens a pipe. Where standard streams are closed, it does not take their numbers. Returns the system's error, or 0.
int open_pipe(int (&ends)[2]) {
  if (::pipe(ends) != 0) return errno;
  int error = 0;
  for (int& end : ends) {
    const int moved = ::fcntl(end, F_DUPFD, STDERR_FILENO + 1);
    if (moved < 0) error = errno;
    ::close(end);
    end = moved;
  }
  if (error == 0) return 0;
  for (const int end : ends)
    if (end >= 0) ::close(end);
  return error;
}

/// Starts the watcher, whose standard input is `reader`. Returns the system's error, or 0. A session of its own keeps
/// it alive when the terminal closes or gets Ctrl-C.
int spawn_watcher(pid_t& watcher, std::string folder, int reader) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, reader, STDIN_FILENO);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
  // The watcher keeps no pipe, socket or file of this process open.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  char shell[] = "sh", option[] = "-c";
  char* const words[] = {shell, option, watch, folder.data(), nullptr};
  const int error = posix_spawn(&watcher, "/bin/sh", &actions, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

ScratchFolder::ScratchFolder(const std::string& purpose, const ScratchOptions& options) : keep_(options.keep) {
  const fs::path place = parent_of(options);
  path_ = (place / ("zero-" + purpose + "-XXXXXX")).string();
  if (!::mkdtemp(path_.data()))
    throw InputError(place.string() + ": no folder can be made there: " + std::strerror(errno) + "; " + options.remedy);
  if (!keep_) start_watcher();
}

// Child programs inherit the writing end.
void ScratchFolder::start_watcher() {
  int ends[2];
  int error = open_pipe(ends);
  if (error == 0) {
    error = spawn_watcher(watcher_, path_, ends[0]);
    ::close(ends[0]);
    alive_ = ends[1];
    if (error == 0) return;
    ::close(alive_);
  }
  ::rmdir(path_.c_str());
  throw Error(path_ + ": the process that removes it cannot be started: " + std::strerror(error));
}

ScratchFolder::~ScratchFolder() {
  if (keep_) return;
  std::error_code none;
  fs::remove_all(path_, none);
  // A watcher that somebody has killed may be gone, and its number another process's.
  if (::waitpid(watcher_, nullptr, WNOHANG) == 0) {
    ::kill(watcher_, SIGKILL);
    while (::waitpid(watcher_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  ::close(alive_);
}

}  // namespace zero
