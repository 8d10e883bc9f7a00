#pragma once
// ProgramOutput: the exit code and the output of a program.
#include <string>
#include <vector>

namespace zero {

struct ProgramOutput {
  int code = 0;  // 124: it took too long and was ended
  std::string text;
};

/// Looks up a program in this process's PATH and returns its path; empty if it is not found.
std::string program_on_path(const std::string& name);

/// Runs a program with empty standard input for at most `seconds` seconds, and returns all that it prints. Throws Error
/// if the program cannot be started.
ProgramOutput output_of(const std::vector<std::string>& words, int seconds);

/// The lines of a text.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace zero
