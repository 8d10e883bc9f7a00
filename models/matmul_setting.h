#pragma once
// Which library multiplies fp32 matrices on the CPU. LibTorch asks MKL unless it is told that reduced precision will do; then
// it asks oneDNN, which is faster on CPUs that are not Intel's, and on those without matrix units computes in fp32 all the same.
#include <string>

namespace zero {

/// Measures the error and the speed of the other path on this machine and takes it, for the CPU alone, where its error is
/// that of fp32 and it is faster. Gives one sentence for the log. Changes a setting of the whole process: call it once, at
/// the start, before other threads compute.
std::string choose_fast_matmul();

}  // namespace zero
