#pragma once
// Attention on the CPU in blocks of 64 queries by 64 keys, after FlashAttention-2 (Dao 2023). Scores exist for one
// block at a time. Blocks above the diagonal or outside a document are never computed. The query heads of a group share
// their packed keys and values. bf16 products are AVX512-BF16 dot products into fp32, fp32 ones plain FMA.
#include <cstddef>
#include <cstdint>

#include "models/ops/kernels/row_kernels.h"

namespace zero::kernels {

/// One batch of sequences, with q and k already rotated. q, k, v of a token are adjacent.
template <class T>
struct AttentionProblem {
  const T* qkv;               // [B, length, (heads + 2 kv_heads) head_dim]
  const std::int32_t* first;  // [B, length]: the first token that a token attends to, rising; null: 0
  T* out;                     // [B, length, heads * head_dim]
  float* lse;                 // [B, heads, length]: log-sum-exp of the scaled scores
  const T* dout = nullptr;    // backward only
  T* dqkv = nullptr;
  std::int64_t length, heads, kv_heads, head_dim;
  float scale;  // of scores
};

/// Forward (fills out and lse) and backward (reads them, fills dqkv) of one batch row and one kv head with all its
/// query heads. Calls for other rows and heads may run at the same time. The workspace is 64-byte aligned.
template <class T>
struct AttentionKernels {
  void (*forward)(const AttentionProblem<T>&, std::int64_t row, std::int64_t kv_head, void* workspace);
  void (*backward)(const AttentionProblem<T>&, std::int64_t row, std::int64_t kv_head, void* workspace);
  std::size_t (*workspace_bytes)(std::int64_t length, std::int64_t head_dim);
};

/// Null if this machine lacks the instructions. head_dim must be a multiple of 16 up to 256.
template <class T>
const AttentionKernels<T>* attention_kernels();

}  // namespace zero::kernels
