#pragma once
// Meta kernels of LibTorch operations, which allocate what the real ones allocate. For a few operations that a decoder
// needs, LibTorch has meta kernels only in Python. The .cpp file registers these: index_select, abs.out (of logsumexp),
// and the CPU's attention for cases without a kernel of this project.
#include <ATen/core/Tensor.h>

#include "models/ops/attention.h"

namespace zero {

/// Allocates what LibTorch's CPU attention allocates, for tensors on the meta device. q is [B, heads, T, head_dim]. k
/// and v have the same shape with their own heads. mask is [B, 1, T, T] bool or undefined.
at::Tensor attend_on_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask);

/// Allocates what attention() allocates on a GPU, forward and backward, for qkv on the meta device. LibTorch's kernels
/// save queries, keys, values, the result and one number per token and head. The fp32 kernel, and any kernel with a
/// bias, expands keys and values to all query heads. The bf16 and fp16 kernels sum the queries' gradient in fp32. The
/// three gradients are packed into one tensor. `packed` says that rows hold several documents. Without a bias, their
/// sums are rounded up to whole blocks of tokens (one block per document is assumed). `biased` says that the batch has
/// a bias.
at::Tensor device_attention_on_meta(const at::Tensor& qkv, const AttentionShape& shape, bool packed, bool biased);

}  // namespace zero
