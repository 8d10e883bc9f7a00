#pragma once
// PrintedOutput: the standard output of a program whose result is what it prints.

namespace zero {

/// Flushes standard output. Error if any output was lost.
void require_written_output();

}  // namespace zero
