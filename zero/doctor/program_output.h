#pragma once
// ProgramOutput: the exit code and the output of a program.
#include <string>
#include <vector>

namespace zero {

struct ProgramOutput {
  int code = 0;  // 128 + n: signal n killed it
  std::string text;
};

/// Looks up a program in this process's PATH and returns its path; empty if it is not found.
std::string program_on_path(const std::string& name);

/// Runs a program with empty standard input, and returns all that it prints. Throws NotExecutedError if it cannot be
/// executed, and OutOfTimeError if it takes more than `seconds` seconds (base/process/child_process.h).
ProgramOutput output_of(const std::vector<std::string>& words, int seconds);

/// The lines of a text.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace zero
