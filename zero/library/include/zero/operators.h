#pragma once
// The project's fused operations, with gradients, for use in your own modules. They run on CPU and GPU, in fp32, bf16
// and fp64.
#include <torch/types.h>

namespace zero {

/// x [..., hidden], weight [hidden]: returns weight * x / sqrt(mean(x^2) + eps), as transformers' LlamaRMSNorm does,
/// but rounded only once.
torch::Tensor fused_rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps);

/// gate_up [..., 2 * inner], gate first (Shazeer 2020). Returns silu(gate) * up, [..., inner].
torch::Tensor fused_swiglu(const torch::Tensor& gate_up);

/// logits [rows, classes], targets [rows] int64. Returns the sum over rows, a scalar in fp32 or fp64.
torch::Tensor fused_cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets);

}  // namespace zero
