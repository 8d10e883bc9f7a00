#pragma once
// A family's operations on queries and keys between their projection and attention.
#include <ATen/core/Tensor.h>

#include "models/ops/attention.h"
#include "models/parallel/token_split.h"

namespace zero {

/// RMSNorm over parts of a row: x [B, T, width] is split into groups of the weight's size. Each group is normalised
/// separately, with the same weight.
at::Tensor norm_groups(const at::Tensor& x, const at::Tensor& weight, double eps);

/// Normalises queries and keys of qkv [B, T, (heads + 2 kv_heads) head_dim], each with its own weight. Values are
/// returned unchanged. A weight of head_dim elements normalises each head; a larger one normalises all heads together.
/// `shared` names the ranks that hold the other heads. If it is set, qkv and weights cover only this rank's heads.
at::Tensor norm_heads(const at::Tensor& qkv, const AttentionShape& shape, const at::Tensor& q_norm,
                      const at::Tensor& k_norm, double eps, const TokenSplit& shared = {});

/// Reorders the dimensions of each query and key head of qkv for Rotary. If only the first `turned` dimensions rotate,
/// in pairs (i, i + turned / 2), the others are placed between the halves. Scores do not depend on the order.
at::Tensor heads_in_order(const at::Tensor& qkv, const AttentionShape& shape, std::int64_t turned);

}  // namespace zero
