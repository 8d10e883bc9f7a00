#pragma once
// Root-mean-square norm as transformers' LlamaRMSNorm, y = weight * x / sqrt(mean(x^2) + eps), but rounded once:
// everything up to y is fp32 (fp64 in fp64). Under autograd it saves x, weight and rstd. Functions that contain a norm
// call forward and backward themselves, and recompute y (4 bytes a row instead of a second activation).
#include <ATen/core/Tensor.h>

namespace zero {

struct RmsNormed {
  at::Tensor y;     // as x
  at::Tensor rstd;  // [rows], fp32 (fp64 in fp64); not differentiable
};

/// x [rows, hidden] contiguous, weight [hidden].
RmsNormed rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// Recomputes y, equal to the last bit.
at::Tensor rms_norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd);

struct RmsNormGradients {
  at::Tensor x;
  at::Tensor weight;  // undefined unless wanted; summed over the rows in the type of rstd, rounded once
};
/// `beside`: another gradient of x, added to that of the norm; same type as x, or undefined. On a GPU the sum is
/// rounded once, elsewhere after the norm's own.
RmsNormGradients rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& rstd, bool want_weight, const at::Tensor& beside = {});

}  // namespace zero
