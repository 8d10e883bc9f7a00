#pragma once
// Where the lines of the log go that are no warnings.

namespace zero {

/// From now on lines below a warning go to standard output, for programs whose log is their result. They go to standard error
/// otherwise, since standard output belongs to results. To be called after start_log(), and on rank 0 alone.
void log_to_standard_output();

}  // namespace zero
