#pragma once
// Root-mean-square norm like transformers' LlamaRMSNorm, y = weight * x / sqrt(mean(x^2) + eps), but rounded only once:
// all steps before y are in fp32 (fp64 for fp64). Under autograd it saves x, weight and rstd. Functions with a fused
// norm call forward and backward themselves and recompute y, so they save 4 bytes per row instead of a second
// activation.
#include <ATen/core/Tensor.h>

namespace zero {

struct RmsNormed {
  at::Tensor y;     // like x
  at::Tensor rstd;  // [rows], fp32 (fp64 in fp64); not differentiable
};

/// x [rows, hidden] contiguous, weight [hidden].
RmsNormed rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// Recomputes y from rstd, bit for bit.
at::Tensor rms_norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd);

struct RmsNormGradients {
  at::Tensor x;
  at::Tensor weight;  // undefined unless wanted; summed over rows in rstd's type, rounded once
};
/// `beside` is another gradient of x, in x's type, that is added to the norm's; it may be undefined. A GPU rounds only
/// the sum. A CPU also rounds the norm's gradient first.
RmsNormGradients rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& rstd, bool want_weight, const at::Tensor& beside = {});

}  // namespace zero
