#pragma once
// Runs the body of a program with one process. Programs with many ranks use comm/world/job.h.
#include <functional>

namespace zero {

/// Starts the log, runs the body and returns its exit code. An exception becomes one error line and its exit
/// code.
int run_program(const std::function<int()>& body);

}  // namespace zero
