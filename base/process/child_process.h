#pragma once
// Starts a program, waits for it and writes its output to a file.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace zero {

/// This process was asked to stop while it waited.
struct StoppedError : Error {
  StoppedError() : Error("stopped, as asked") {}
};

/// The program was not executed: it is missing, or is no program for this machine. The message has the system's reason.
struct NotExecutedError : Error {
  using Error::Error;
};

/// The program did not end within its time, and was killed.
struct OutOfTimeError : Error {
  using Error::Error;
};

/// Runs a program and returns its exit code, or 128 + n if signal n killed it. Every code is the program's own answer.
/// Standard output and error go to `log`; standard input is empty. A name without a slash is looked up on the PATH. The
/// program has its own process group. If this process gets SIGINT, SIGTERM or SIGHUP, kills that group and throws
/// StoppedError. If the program takes longer than `limit`, sends SIGTERM to the group, SIGKILL five seconds later, and
/// throws OutOfTimeError. Throws NotExecutedError, and Error if no process can be started.
int run_program_to_end(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                       const std::string& log, std::optional<std::chrono::seconds> limit = std::nullopt);

}  // namespace zero
