#pragma once
// How the log shares the screen with a program's own output.
#include <functional>
#include <string>

namespace zero {

/// Sends lines below a warning to standard output, for programs whose log is their result. By default they go to
/// standard error, since standard output is for results. Call this after start_log(), on rank 0 only.
void log_to_standard_output();

/// Calls `opening` before every line of the log and prints the returned text first, on the same stream. A program that
/// leaves a line of its own unfinished can end it this way. `opening` must not log. Pass nullptr to end this. Call it
/// on rank 0 only.
void open_log_lines_with(std::function<std::string()> opening);

}  // namespace zero
