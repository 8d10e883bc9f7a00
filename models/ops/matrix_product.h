#pragma once
// Matrix products as LibTorch's, with two that it is slow at on a CPU: few rows with a weight, and 16-bit numbers on a
// processor without instructions for them (AVX2 alone), which it multiplies number by number.
#include <ATen/core/Tensor.h>

namespace zero {

/// Where LibTorch is asked for deterministic algorithms, results on a CPU depend on the sizes alone: blocks of fixed sizes
/// are multiplied by one thread each.
///
/// a b: [m, n] for a [m, k], b [k, n], of any strides. No derivative: for use inside functions that have one. Sums are
/// fp32 ones (fp64 of fp64), rounded once.
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b);
/// out = a b, or with `add` out += a b, rounded once; `out` has the type of a and b, and any strides.
void matrix_product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add = false);

/// Whether LibTorch has no fast product of this type on this machine's CPU: operands are better widened to fp32.
bool widened_on_cpu(at::ScalarType type);

}  // namespace zero
