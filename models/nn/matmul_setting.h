#pragma once
// Which library multiplies fp32 matrices on the CPU. LibTorch asks MKL unless it is told that reduced precision will
// do; then it asks oneDNN, which is faster on CPUs that are not Intel's, and on those without matrix units computes in
// fp32 all the same.
#include <string>

namespace zero {

/// On processors that are not Intel's, measures the error of the other path and takes it, for the CPU alone, where it
/// is that of fp32. The choice depends on the processor and never on a timing, or a run would not repeat bit for bit.
/// Gives one sentence for the log. Changes a setting of the whole process: call it once, at the start, before other
/// threads compute.
std::string choose_fast_matmul();

/// Products of matrices have the same bits for any number of threads, from now on (models/ops/matrix_product.h), and
/// operations without a deterministic kernel are errors: LibTorch's setting of deterministic algorithms. At the start, too.
void choose_deterministic_products();

}  // namespace zero
