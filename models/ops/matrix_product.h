#pragma once
// Matrix products as LibTorch's, except two cases that LibTorch computes slowly on a CPU. One is few rows with a
// weight. The other is 16-bit numbers on a processor without instructions for them (AVX2 alone), which it multiplies
// number by number.
#include <ATen/core/Tensor.h>

namespace zero {

/// A GPU's memory for products, on top of their tensors: bytes that cuBLASLt may work in, on the compute stream.
inline constexpr std::int64_t device_product_workspace = 32 << 20;

/// If LibTorch is asked for deterministic algorithms, results on a CPU depend only on the sizes. Blocks of fixed sizes
/// are then multiplied by one thread each.
///
/// a b: [m, n] for a [m, k], b [k, n], of any strides. No derivative: for use inside functions that have one. Sums are
/// fp32 (fp64 for fp64), rounded once.
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b);
/// a b + residual + bias, of a's type. residual [m, n] stays as it is; bias is [n]; both may be undefined. A GPU adds
/// them to the fp32 sum, in the product's epilogue. Elsewhere the sum with the residual is rounded, and the bias is
/// added to that.
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& residual, const at::Tensor& bias);
/// out = a b, or with `add` out += a b. `out` has any strides. It has the type of a and b, to which the sum is rounded
/// once, or is wider: fp32 for 16-bit operands. A GPU then adds the fp32 product itself; elsewhere it is rounded to a's
/// type first.
void matrix_product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add = false);

/// True if LibTorch has no fast product of this type on this machine's CPU. Callers then widen operands to fp32.
bool widened_on_cpu(at::ScalarType type);

}  // namespace zero
