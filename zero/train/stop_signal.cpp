#include "zero/train/stop_signal.h"

#include <csignal>
#include <ctime>

namespace zero {
namespace {

constexpr int signals[] = {SIGTERM, SIGUSR1};

// A handler has no object to reach.
volatile std::sig_atomic_t noted = 0;
volatile std::time_t noted_at = 0;

std::time_t seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

void note(int signal) {
  if (!noted) {
    noted_at = seconds_now();
    noted = 1;
  } else if (seconds_now() - noted_at > 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

StopSignal::StopSignal() {
  noted = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) sigaction(signal, &action, nullptr);
}

StopSignal::~StopSignal() {
  for (const int signal : signals) std::signal(signal, SIG_DFL);
}

bool StopSignal::requested() const { return noted != 0; }

}  // namespace zero
