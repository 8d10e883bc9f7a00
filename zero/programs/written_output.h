#pragma once
// Checks that a program's results have reached standard output.

namespace zero {

/// Flushes standard output. Throws Error if any output was lost.
void require_written_output();

}  // namespace zero
