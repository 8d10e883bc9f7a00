#pragma once
// Matrix products by LibTorch, except in three cases on a CPU. One is AMX (tiled_product.h). Another is a
// weight times only a few rows. The third is 16-bit operands on a processor without 16-bit instructions (AVX2 only),
// which LibTorch multiplies element by element.
#include <ATen/core/Tensor.h>

namespace zero {

/// The workspace in bytes that cuBLASLt may use on the compute stream, in addition to the products' tensors.
inline constexpr std::int64_t device_product_workspace = 32 << 20;

/// If LibTorch's deterministic algorithms are on, the order of sums on a CPU depends only on the sizes. LibTorch's
/// products are divided into blocks of fixed sizes, and one thread multiplies each block.
///
/// Returns a b, [m, n], for a [m, k] and b [k, n] of any strides. It has no derivative: use it inside autograd
/// functions. Sums are fp32 (fp64 for fp64), rounded once.
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b);
/// Returns a b + residual + bias in a's type. residual [m, n] does not change, bias is [n], and both may be undefined.
/// A GPU adds both to the fp32 sum, in the product's epilogue. A CPU rounds after adding the residual, and then adds
/// the bias.
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& residual, const at::Tensor& bias);
/// out = a b, or with `add` out += a b. `out` may have any strides. If `out` has the type of a and b, the sum is
/// rounded once. `out` may also be fp32 for 16-bit operands. GPUs and AMX tiles then add the fp32 product directly.
/// Other CPUs first round the product to a's type.
void matrix_product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add = false);

/// True if LibTorch has no fast product of this type on this machine's CPU. Callers then widen operands to fp32.
bool widened_on_cpu(at::ScalarType type);

}  // namespace zero
