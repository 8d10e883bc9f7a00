#pragma once
// Layer norm (Ba et al. 2016): y = weight * (x - mean) / sqrt(variance + eps) + bias, computed in fp32 (fp64 in fp64)
// and rounded once. Threads do not change the order of sums over rows.
#include <ATen/core/Tensor.h>

namespace zero {

/// x [..., hidden], weight and bias [hidden]. It supports autograd, and saves x, weight and two numbers a row.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps);

}  // namespace zero
