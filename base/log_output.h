#pragma once
// How the log shares the screen with a program's own output.
#include <functional>
#include <string>

namespace zero {

/// Sends lines below a warning to standard output, for programs whose log is their result. By default they go to
/// standard error, since standard output belongs to results. Call it after start_log(), and only on rank 0.
void log_to_standard_output();

/// Calls `opening` before every line of the log, and prints its result first, on the line's own stream. It is for a
/// program that leaves its own lines unfinished. It must not log. nullptr ends it. Only on rank 0.
void open_log_lines_with(std::function<std::string()> opening);

}  // namespace zero
