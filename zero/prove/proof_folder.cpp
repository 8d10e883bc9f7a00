#include "zero/prove/proof_folder.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

// A removal fails while a dying run still writes, so retry.
constexpr const char* watch =
    "while read -r line; do :; done; for n in 1 2 3 4 5; do rm -rf -- \"$0\" && break; sleep 1; done";

// Starts a session of its own, so that closing the terminal does not kill the watcher.
[[noreturn]] void become_watcher(const char* folder, int reader) {
  setsid();
  dup2(reader, STDIN_FILENO);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
  execl("/bin/sh", "sh", "-c", watch, folder, static_cast<char*>(nullptr));
  _exit(1);
}

}  // namespace

ProofFolder::ProofFolder(const std::string& place, bool keep) : keep_(keep) {
  const fs::path base = place.empty() ? fs::temp_directory_path() : fs::absolute(place);
  path_ = (base / "zero-prove-XXXXXX").string();
  if (!::mkdtemp(path_.data()))
    throw InputError(base.string() + ": no folder can be made there: " + std::strerror(errno) +
                     "; name another one by --scratch");
  if (!keep_) start_watcher();
}

// Child programs inherit the writing end.
void ProofFolder::start_watcher() {
  int ends[2];
  const bool has_pipe = ::pipe(ends) == 0;
  if (has_pipe) watcher_ = ::fork();
  if (watcher_ == 0) {
    ::close(ends[1]);
    become_watcher(path_.c_str(), ends[0]);
  }
  const int error = errno;
  if (has_pipe) {
    ::close(ends[0]);
    alive_ = ends[1];
  }
  if (watcher_ > 0) return;
  if (has_pipe) ::close(alive_);
  ::rmdir(path_.c_str());
  throw Error(path_ + ": the process that removes it cannot be started: " + std::strerror(error));
}

ProofFolder::~ProofFolder() {
  if (keep_) return;
  std::error_code none;
  fs::remove_all(path_, none);
  ::kill(watcher_, SIGKILL);
  while (::waitpid(watcher_, nullptr, 0) < 0 && errno == EINTR) continue;
  ::close(alive_);
}

}  // namespace zero
