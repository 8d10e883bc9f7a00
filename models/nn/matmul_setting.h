#pragma once
// The library for fp32 matrix products on the CPU. By default LibTorch uses MKL. If reduced precision is allowed it
// uses oneDNN, which is faster on CPUs that are not Intel's, and on those without matrix units still computes in fp32.
#include <string>

namespace zero {

/// On processors that are not Intel's, measures the error of the second path and selects it, for the CPU alone, if that
/// is fp32's. The choice depends on the processor and never on a timing, so that a run repeats bit for bit. Returns one
/// sentence for the log. It also lets oneDNN keep 64 compiled products, unless ONEDNN_PRIMITIVE_CACHE_CAPACITY says
/// otherwise. It changes settings of the whole process: call it once, at the start, before the first product.
std::string choose_fast_matmul();

/// From now on matrix products have the same bits for any number of threads (models/ops/matrix_product.h), and
/// operations without a deterministic kernel are errors. This is LibTorch's setting of deterministic algorithms. Call
/// it at the start, too.
void choose_deterministic_products();

}  // namespace zero
