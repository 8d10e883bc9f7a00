#include "base/process/child_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds grace(5);  // between SIGTERM and SIGKILL
constexpr std::chrono::milliseconds glance(10);

volatile std::sig_atomic_t asked_to_stop = 0;  // times

/// While it lives, records these signals and lets them interrupt a wait.
class NotedSignals {
 public:
  NotedSignals() {
    struct sigaction noting {};
    noting.sa_handler = [](int) { asked_to_stop = asked_to_stop + 1; };
    for (int i = 0; i < count; ++i) sigaction(signals[i], &noting, &former_[i]);
  }
  ~NotedSignals() {
    for (int i = 0; i < count; ++i) sigaction(signals[i], &former_[i], nullptr);
  }
  NotedSignals(const NotedSignals&) = delete;
  NotedSignals& operator=(const NotedSignals&) = delete;

 private:
  static constexpr int count = 3;
  static constexpr int signals[count] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction former_[count] {};
};

/// Executes a program as execvp() does, but gives no foreign binary to the shell. Returns the system's reason if that
/// fails.
int why_not_executed(const std::string& name, char* const* argv) {
  if (name.find('/') != std::string::npos) {
    execv(name.c_str(), argv);
    return errno;
  }
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/bin:/usr/bin");
  int reason = ENOENT;
  for (std::string folder; std::getline(folders, folder, ':');) {
    execv(((folder.empty() ? "." : folder) + "/" + name).c_str(), argv);
    if (errno == ENOENT || errno == ENOTDIR) continue;
    reason = errno;
    if (reason != EACCES) break;  // a later folder may have one that this user may execute
  }
  return reason;
}

/// In the child. Writes the system's reason to `failure` if the program cannot be executed.
[[noreturn]] void become(const std::vector<std::string>& words, const std::vector<std::string>& environment, int log,
                         int failure) {
  setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  for (const std::string& pair : environment) putenv(const_cast<char*>(pair.c_str()));
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int reason = why_not_executed(words.front(), argv.data());
  _exit(write(failure, &reason, sizeof reason) < 0 ? 1 : 0);
}

/// A pipe whose ends close in a program that is executed.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw Error(std::string("no pipe can be made: ") + std::strerror(errno));
  }
  ~Pipe() {
    close(ends_[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  /// The number that was written; 0 if the writers have closed the pipe without one.
  int read_number() const {
    int number = 0;
    while (read(ends_[0], &number, sizeof number) < 0 && errno == EINTR) {
    }
    return number;
  }

 private:
  int ends_[2] = {-1, -1};
};

/// Starts the program in a child process, with its output in the file `log`.
pid_t started(const std::vector<std::string>& words, const std::vector<std::string>& environment, int log) {
  Pipe failure;
  const pid_t child = fork();
  if (child == 0) become(words, environment, log, failure.writer());
  if (child < 0) throw Error(words.front() + ": cannot be started: " + std::strerror(errno));
  setpgid(child, child);  // parent and child both call it
  failure.close_writer();
  const int reason = failure.read_number();
  if (reason == 0) return child;
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  throw NotExecutedError(
      words.front() + ": cannot be executed: " + std::strerror(reason) +
      (reason == ENOENT && words.front().find('/') == std::string::npos ? "; is it on the PATH?" : ""));
}

/// Waits for the child and returns its status.
int status_of(pid_t child, const std::string& name, std::optional<std::chrono::seconds> limit) {
  const auto begin = Clock::now();
  int status = 0, last_signal = 0;
  std::sig_atomic_t passed_on = 0;
  for (pid_t ended = 0; (ended = waitpid(child, &status, limit ? WNOHANG : 0)) != child;) {
    if (ended < 0 && errno != EINTR) throw Error(name + ": cannot be waited for: " + std::strerror(errno));
    if (const std::sig_atomic_t asked = asked_to_stop; std::exchange(passed_on, asked) != asked) kill(-child, SIGTERM);
    if (!limit) continue;
    const auto waited = Clock::now() - begin;
    const int signal = waited > *limit + grace ? SIGKILL : waited > *limit ? SIGTERM : 0;
    if (std::exchange(last_signal, signal) != signal) kill(-child, signal);
    std::this_thread::sleep_for(glance);
  }
  if (asked_to_stop) throw StoppedError();
  if (last_signal != 0) throw OutOfTimeError(text(name, ": did not end within ", limit->count(), " s"));
  return status;
}

}  // namespace

int run_program_to_end(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                       const std::string& log, std::optional<std::chrono::seconds> limit) {
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) throw Error(log + ": cannot be written: " + std::strerror(errno));
  const NotedSignals noted;
  pid_t child = 0;
  try {
    child = started(words, environment, file);
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
  const int status = status_of(child, words.front(), limit);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace zero
