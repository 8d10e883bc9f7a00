#pragma once
// A program of one process: what its main() does around its work. Programs of many ranks have comm/world/job.h.
#include <functional>

namespace zero {

/// Starts the log and runs the body, whose exit code it gives. What the body throws becomes one line of error and the
/// exit code that stands for it.
int run_program(const std::function<int()>& body);

/// Flushes standard output. Error where it has lost anything that was written to it.
void require_written_output();

}  // namespace zero
