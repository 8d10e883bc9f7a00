#pragma once
// A family's operations on queries and keys between their projection and attention.
#include <ATen/core/Tensor.h>

#include "models/ops/attention.h"
#include "models/parallel/token_split.h"

namespace zero {

/// RMSNorm of parts of a row: x [B, T, width] in groups of weight's size, each normalised separately, with one weight
/// for all.
at::Tensor norm_groups(const at::Tensor& x, const at::Tensor& weight, double eps);

/// Normalises queries and keys of qkv [B, T, (heads + 2 kv_heads) head_dim], each with its own weight; values stay. A
/// weight of a head's size norms every head, one of all heads' size the whole. `shared`: the ranks that hold the other
/// heads of the whole; heads and weights are then this rank's.
at::Tensor norm_heads(const at::Tensor& qkv, const AttentionShape& shape, const at::Tensor& q_norm,
                      const at::Tensor& k_norm, double eps, const TokenSplit& shared = {});

/// Queries and keys of qkv with the dimensions of each head in Rotary's order. If only the first `turned` rotate, in
/// pairs (i, i + turned / 2), the others are placed between the halves. Scores do not depend on the order.
at::Tensor heads_in_order(const at::Tensor& qkv, const AttentionShape& shape, std::int64_t turned);

}  // namespace zero
