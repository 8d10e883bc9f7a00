#pragma once
// How the log shares the screen with a program's own output.
#include <functional>
#include <string>

namespace zero {

/// From now on lines below a warning go to standard output, for programs whose log is their result. They go to standard
/// error otherwise, since standard output belongs to results. To be called after start_log(), and on rank 0 alone.
void log_to_standard_output();

/// `opening` is called before every line of the log, and what it returns goes first, on the line's own stream: for a
/// program that leaves lines of its own unfinished. It must not log. nullptr: nothing any more. On rank 0 alone.
void open_log_lines_with(std::function<std::string()> opening);

}  // namespace zero
