#pragma once
// The GPU implementations of the operations: kernels for fp32, bf16 and fp16. Other types, and rows that the kernels do
// not support, use composed implementations. A build without CUDA registers none (absent.cpp).
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "models/ops/attention.h"

namespace zero::cuda {

/// Registers kernels in the library `zero` for the dispatch key CUDA.
void register_kernels(torch::Library& library);
/// Registers attention for the dispatch keys CUDA and AutogradCUDA.
void register_attention(torch::Library& library);

/// True if the kernels support the tensor's type.
bool takes_type(const at::Tensor& tensor);
/// True if the norm's kernel supports the rows: contiguous, in whole 16-byte chunks, not longer than a block holds,
/// with a weight of their type.
bool takes(const at::Tensor& rows, const at::Tensor& weight);

/// Views of one qkv, each [B, T, heads or kv_heads, head_dim].
struct TurnedHeads {
  at::Tensor q, k, v;
};

/// Rotates the queries and keys of qkv [B, T, width] in place, or in a copy if qkv is not contiguous. Supports
/// autograd.
TurnedHeads turn_heads(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                       const at::Tensor& positions);

}  // namespace zero::cuda
