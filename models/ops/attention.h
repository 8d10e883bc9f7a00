#pragma once
// Causal attention with grouped keys and values (Ainslie et al. 2023), softmax in fp32 (fp64 for fp64). A token attends
// to itself and to earlier tokens of its own document and of its document's trunk. With a window (Beltagy et al. 2020)
// it attends only to the nearest of these tokens. Padding attends only to itself.
#include <ATen/core/Tensor.h>

#include "models/ops/dropout.h"
#include "models/ops/rotary.h"
#include "models/unit.h"

namespace zero {

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t window = 0;  // number of visible tokens, including the token itself; 0: all
  double scale = 0;         // multiplies scores; 0: 1 / sqrt(head_dim)

  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

/// qkv [B, T, (heads + 2 kv_heads) head_dim], q first, before rotation. qkv is overwritten, and its contents are
/// undefined afterwards. Uses the batch's positions and documents, or their GPU forms. `dropout` drops probabilities
/// after the softmax. Returns [B, T, heads * head_dim].
at::Tensor attention(const at::Tensor& qkv, const AttentionShape& shape, Rotary& rotary, const Batch& batch,
                     const HeadDropout& dropout = {});

/// The mask of the tokens that each token of a row attends to, [B, 1, T, T] bool, for documents [B, T]. Undefined if
/// `documents` is undefined.
at::Tensor document_mask(const at::Tensor& documents);

/// Returns the same for a window in rows of `length` tokens, [1, 1, T, T] bool. Undefined if the window covers all of
/// them.
at::Tensor window_mask(std::int64_t length, std::int64_t window, at::Device device);

class KvCache;

/// A cache, and the number of the block's layer in it.
struct CacheLayer {
  KvCache& cache;
  std::int64_t layer;
};

/// Attention for tokens that follow those in the cache. There is no gradient.
at::Tensor cached_attention(const at::Tensor& qkv, const AttentionShape& shape, Rotary& rotary, const Batch& batch,
                            const CacheLayer& place);

}  // namespace zero
