#pragma once
// Attention by the project's own CPU kernels, forward and backward, for the cases that they support.
#include <ATen/core/Tensor.h>

#include "models/ops/attention.h"

namespace zero {

/// Computes attention() with the kernels. Returns an undefined tensor for another type or device, a head_dim that is
/// not a multiple of 16, and a document whose tokens are not adjacent. Does the same on a machine without AVX-512 (for
/// bf16, without AVX512-BF16). Saves qkv (rotated in place), the result, and one number per token and head for the
/// backward pass.
at::Tensor kernel_attention(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                            const Batch& batch, const HeadDropout& dropout);

}  // namespace zero
