#pragma once
// What operations of LibTorch hold, for tensors on Meta. Most of LibTorch's operations say it themselves there; for a
// few that a decoder needs only its Python part does. The source file registers those with the dispatcher:
// index_select, abs.out (of logsumexp), and the attention that the CPU takes where the project's own kernels do not.
#include <ATen/core/Tensor.h>

#include "models/ops/attention.h"

namespace zero {

/// What LibTorch's attention takes on the CPU, of tensors on Meta. q [B, heads, T, head_dim], k and v alike with their
/// own heads, mask [B, 1, T, T] of bits or undefined.
at::Tensor attend_on_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask);

/// attention() on a GPU, of qkv on Meta: memory alone, forward and backward. LibTorch's kernels save queries, keys,
/// values, the result and one number per token and head; that of fp32 wants keys and values once per query head, those
/// of bf16 and fp16 sum the queries' gradient in fp32; the gradients of the three are packed into one. `packed`: rows hold several documents, whose sums are rounded up
/// to whole blocks of tokens (taken to be one for each document).
at::Tensor device_attention_on_meta(const at::Tensor& qkv, const AttentionShape& shape, bool packed);

}  // namespace zero
