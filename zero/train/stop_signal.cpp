#include "zero/train/stop_signal.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace zero {
namespace {

constexpr int signals[] = {SIGINT, SIGHUP, SIGTERM, SIGUSR1};
// When a single rank fails, mpirun sends the others SIGTERM, and a second later SIGKILL. That is not a request to stop,
// and no checkpoint follows.
constexpr unsigned seconds_to_live = 2;
constexpr char checkpoint_follows[] =
    "\nasked to stop: a checkpoint follows the current step or part of a validation; a second signal ends the run at once\n";
constexpr char nothing_follows[] =
    "\nasked to stop: the run ends before its next step; a second signal ends it at once\n";
constexpr char result_follows[] =
    "\nasked to stop: the run is over and its result is being written; a second signal ends it at once, and what is not written is lost\n";

// A signal handler cannot access an object.
volatile std::sig_atomic_t noted = 0;
volatile std::sig_atomic_t answers = 0;
volatile std::sig_atomic_t kind_of_answer = 0;  // a StopAnswer
volatile std::int64_t noted_at = 0;

std::int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000} + now.tv_nsec / 1000000;
}

void answer(int = 0) {
  const int former = errno;
  const auto say = [](const auto& words) { return write(STDERR_FILENO, words, sizeof words - 1); };
  ssize_t told = 0;
  if (answers && kind_of_answer == int(StopAnswer::checkpoint_follows)) told = say(checkpoint_follows);
  if (answers && kind_of_answer == int(StopAnswer::nothing_follows)) told = say(nothing_follows);
  if (answers && kind_of_answer == int(StopAnswer::result_follows)) told = say(result_follows);
  if (told < 0) answers = 0;
  errno = former;
}

void note(int signal) {
  const int former = errno;
  if (!noted) {
    noted_at = milliseconds_now();
    noted = 1;
    if (signal == SIGTERM)
      alarm(seconds_to_live);
    else
      answer();
  } else if (milliseconds_now() - noted_at > (signal == SIGINT ? 200 : 1000)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  errno = former;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

bool listens_to(int signal) {
  struct sigaction present {};
  sigaction(signal, nullptr, &present);
  return present.sa_handler != SIG_IGN || (signal != SIGINT && signal != SIGHUP);
}

}  // namespace

StopSignal::StopSignal(bool speaks) {
  noted = 0;
  answers = speaks;
  kind_of_answer = int(StopAnswer::checkpoint_follows);
  std::signal(SIGPIPE, SIG_IGN);  // the process that reads the log may end before the run does
  handle(SIGALRM, answer);
  for (const int signal : signals)
    if (listens_to(signal)) handle(signal, note);
}

// Further signals while the process ends do not change how it ends, except SIGTERM.
StopSignal::~StopSignal() {
  answers = 0;
  for (const int signal : {SIGINT, SIGHUP, SIGUSR1}) std::signal(signal, SIG_IGN);
}

void StopSignal::answer_with(StopAnswer answer) { kind_of_answer = int(answer); }

bool StopSignal::requested() const { return noted != 0; }

}  // namespace zero
