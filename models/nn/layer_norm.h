#pragma once
// Layer norm (Ba et al. 2016): y = weight * (x - mean) / sqrt(variance + eps) + bias, computed in fp32 (fp64 for fp64)
// and rounded once. The order of sums over rows does not depend on the number of threads.
#include <ATen/core/Tensor.h>

namespace zero {

/// x [..., hidden], weight and bias [hidden]. Supports autograd, and saves x, weight and two numbers per row.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps);

}  // namespace zero
