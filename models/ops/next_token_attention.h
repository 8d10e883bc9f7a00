#pragma once
// Attention of one new token in each row to the tokens of a cache, on the CPU.
#include <ATen/core/Tensor.h>

#include "models/ops/kv_cache.h"

namespace zero {

/// q: [B, 1, heads, head_dim], rotated. `kept`: all keys and values, the new token's among them. `mask`:
/// [B, 1, 1, columns] bool, undefined if all columns count. Scores are multiplied by `scale`. Returns
/// [B, 1, heads * head_dim], or an undefined tensor if no kernel takes the type or the device. There is no gradient.
at::Tensor next_token_attention(const at::Tensor& q, const KvCache::KeysValues& kept, const at::Tensor& mask,
                                double scale);

}  // namespace zero
