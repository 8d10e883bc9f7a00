#pragma once
// Starts a program, waits for it and writes its output to a file.
#include <string>
#include <vector>

#include "base/error.h"

namespace zero {

/// This process was asked to stop while it waited.
struct StoppedError : Error {
  StoppedError() : Error("stopped, as asked") {}
};

/// Runs a program and returns its exit code, or 128 + n if signal n killed it. Standard output and error go to `log`;
/// standard input is empty. The program has its own process group. If this process gets SIGINT, SIGTERM or SIGHUP,
/// kills that group and throws StoppedError. Throws Error if the program cannot be started.
int run_program_to_end(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                       const std::string& log);

}  // namespace zero
