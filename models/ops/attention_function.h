#pragma once
// Attention by the project's own CPU kernels, forward and backward, for the cases that they take.
#include <ATen/core/Tensor.h>

#include "models/ops/attention.h"

namespace zero {

/// attention() by the kernels; undefined when they do not take the case: another type or device, a head_dim that is no
/// multiple of 16, documents that come back after another one, a machine without AVX-512 (with bf16, for bf16).
/// Saved for the backward pass: qkv (rotated in place), the result, and one number per token and head.
at::Tensor kernel_attention(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                            const Batch& batch);

}  // namespace zero
