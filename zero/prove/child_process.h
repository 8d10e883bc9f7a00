#pragma once
// A program that is started and waited for, with its words in a file.
#include <string>
#include <vector>

namespace zero {

/// Its exit code, 128 + n where signal n killed it. Standard output and standard error go to `log`; standard input is
/// empty. It has a process group of its own, which is ended when this process is asked to stop meanwhile (SIGINT,
/// SIGTERM, SIGHUP): Error then, with exit code 1. Throws Error when it cannot be started.
int run_program_to_end(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                       const std::string& log);

}  // namespace zero
