#pragma once
// The memory of LibTorch operations, for tensors on Meta. Most operations of LibTorch define it there. For a few that a
// decoder needs, only its Python part does. The source file registers those with the dispatcher: index_select, abs.out
// (of logsumexp), and the CPU's attention for cases without a kernel of the project.
#include <ATen/core/Tensor.h>

#include "models/ops/attention.h"

namespace zero {

/// The memory of LibTorch's attention on the CPU, for tensors on Meta. q [B, heads, T, head_dim], k and v alike with
/// their own heads, mask [B, 1, T, T] of bits or undefined.
at::Tensor attend_on_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask);

/// The memory of attention() on a GPU, forward and backward, for qkv on Meta. LibTorch's kernels save queries, keys,
/// values, the result and one number per token and head. The fp32 kernel expands keys and values to all query heads.
/// The bf16 and fp16 kernels sum the queries' gradient in fp32. The gradients of the three are packed into one.
/// `packed`: rows hold several documents, whose sums are rounded up to whole blocks of tokens (assumed to be one for
/// each document).
at::Tensor device_attention_on_meta(const at::Tensor& qkv, const AttentionShape& shape, bool packed);

}  // namespace zero
