#pragma once
// The operations on a GPU, by kernels for fp32, bf16 and fp16. Other types, and rows that the kernels do not support,
// are composed. A build without CUDA registers none (absent.cpp).
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "models/ops/attention.h"

namespace zero::cuda {

/// For the library `zero` and the key CUDA.
void register_kernels(torch::Library& library);
/// For the keys CUDA and AutogradCUDA.
void register_attention(torch::Library& library);

/// True if the kernels support the tensor's type.
bool takes_type(const at::Tensor& tensor);
/// True if the norm's kernel supports the rows: contiguous, in whole 16-byte chunks, not longer than a block holds,
/// with a weight of their type.
bool takes(const at::Tensor& rows, const at::Tensor& weight);

/// [B, T, heads or kv_heads, head_dim] each, in the memory of one qkv.
struct TurnedHeads {
  at::Tensor q, k, v;
};

/// qkv [B, T, width] with its queries and keys rotated in place (a copy if it is not contiguous), through autograd. qkv
/// is overwritten.
TurnedHeads turn_heads(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                       const at::Tensor& positions);

}  // namespace zero::cuda
