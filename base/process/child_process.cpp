#include "base/process/child_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr int no_such_program = 127;

volatile std::sig_atomic_t asked_to_stop = 0;

/// While it lives, records these signals and lets them interrupt a wait.
class NotedSignals {
 public:
  NotedSignals() {
    struct sigaction noting {};
    noting.sa_handler = [](int) { asked_to_stop = 1; };
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

[[noreturn]] void become(const std::vector<std::string>& words, const std::vector<std::string>& environment, int log) {
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
  execvp(argv[0], argv.data());
  _exit(no_such_program);
}

}  // namespace

int run_program_to_end(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                       const std::string& log) {
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) throw Error(log + ": cannot be written: " + std::strerror(errno));
  const NotedSignals noted;
  const pid_t child = fork();
  if (child == 0) become(words, environment, file);
  close(file);
  if (child < 0) throw Error(words.front() + ": cannot be started: " + std::strerror(errno));
  setpgid(child, child);  // parent and child both call it
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error(words.front() + ": cannot be waited for: " + std::strerror(errno));
    if (asked_to_stop) kill(-child, SIGTERM);
  }
  if (asked_to_stop) throw StoppedError();
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == no_such_program) throw Error(words.front() + ": cannot be started; is it on the PATH?");
  return code;
}

}  // namespace zero
