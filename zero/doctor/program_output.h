#pragma once
// ProgramOutput: a program that is asked something.
#include <string>
#include <vector>

namespace zero {

struct ProgramOutput {
  int code = 0;  // 124: it took too long and was ended
  std::string text;
};

/// The path of a program by the PATH of this process; empty if it is not there.
std::string program_on_path(const std::string& name);

/// Runs a program with empty standard input and returns all that it prints, at most for so many seconds. Throws Error
/// if it cannot be started.
ProgramOutput output_of(const std::vector<std::string>& words, int seconds);

/// The lines of a text.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace zero
