#pragma once
// Runs the body of a program with one process. Programs with many ranks use comm/world/job.h.
#include <functional>

namespace zero {

/// Starts the log, runs the body and returns its exit code. An exception is logged as one error line and determines the
/// exit code.
int run_program(const std::function<int()>& body);

/// Flushes standard output. Throws Error if any output was lost.
void require_written_output();

}  // namespace zero
