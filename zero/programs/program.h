#pragma once
// A program of one process: what its main() does around its work. Programs of many ranks have comm/world/job.h.
#include <functional>

namespace zero {

/// Starts the log and runs the body, whose exit code it gives. What the body throws becomes one line of error and the
/// exit code that stands for it.
int run_program(const std::function<int()>& body);

}  // namespace zero
