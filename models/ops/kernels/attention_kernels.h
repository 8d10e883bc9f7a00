#pragma once
// Attention on the CPU after FlashAttention-2 (Dao 2023). Forward's blocks have 64 keys and 32 queries, backward's 64
// of each. The kernels hold one block of scores at a time, keys by queries. Each lane of a vector computes the softmax
// of its own query. Blocks above the diagonal or outside a document are never computed. The query heads of a
// group share their packed keys and values. bf16 products accumulate in fp32, on AMX tiles if the processor has them
// and head_dim is a multiple of 32, else by AVX512-BF16 dot products. fp32 products use plain FMA.
#include <cstddef>
#include <cstdint>

#include "models/ops/kernels/row_kernels.h"

namespace zero::kernels {

/// Dropout of probabilities. Draws have the counters of dropout_mask() (models/ops/dropout.h), so nothing is kept.
struct AttentionDrops {
  std::uint64_t seed = 0;
  std::int64_t first_sample = 0, first_head = 0;
  std::uint32_t threshold = 0;  // of draws that zero a probability; 0: no dropout
  float kept = 1;               // multiplies the other probabilities
};

/// One batch of sequences. q and k are already rotated. A token's q, k and v are adjacent.
template <class T>
struct AttentionProblem {
  const T* qkv;               // [B, length, (heads + 2 kv_heads) head_dim]
  const std::int32_t* first;  // [B, length]: the first token that each token attends to, ascending; null: 0
  const std::int32_t* gaps;   // [2, B, length]: tokens from the first number up to the second are not attended to;
                              // null: no gaps
  T* out;                     // [B, length, heads * head_dim]
  float* lse;                 // [B, heads, length]: log-sum-exp of the scaled scores
  const T* dout = nullptr;    // backward only
  T* dqkv = nullptr;
  std::int64_t rows, length, heads, kv_heads, head_dim;
  float scale;  // multiplies scores; positive
  AttentionDrops drops = {};
};

/// Each call processes one batch row and one kv head with all its query heads. Forward fills out and lse. Backward
/// reads them and fills dqkv. Calls for other rows and heads may run concurrently. The workspace is 64-byte aligned.
template <class T>
struct AttentionKernels {
  void (*forward)(const AttentionProblem<T>&, std::int64_t row, std::int64_t kv_head, void* workspace);
  void (*backward)(const AttentionProblem<T>&, std::int64_t row, std::int64_t kv_head, void* workspace);
  std::size_t (*workspace_bytes)(std::int64_t length, std::int64_t head_dim);
};

/// Returns null if this machine lacks the instructions. head_dim must be a multiple of 16 up to 256.
template <class T>
const AttentionKernels<T>* attention_kernels();

}  // namespace zero::kernels
