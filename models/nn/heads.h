#pragma once
// What a family does to queries and keys between their projection and attention.
#include <ATen/core/Tensor.h>

#include "models/ops/attention.h"

namespace zero {

/// RMSNorm of part of a row: x [B, T, width] in groups of weight's size, each by itself, with one weight for all.
at::Tensor norm_groups(const at::Tensor& x, const at::Tensor& weight, double eps);

/// Queries and keys of qkv [B, T, (heads + 2 kv_heads) head_dim] each under a norm of its own; values stay. A weight of a
/// head's size norms every head, one of all heads' size the whole.
at::Tensor norm_heads(const at::Tensor& qkv, const AttentionShape& shape, const at::Tensor& q_norm,
                      const at::Tensor& k_norm, double eps);

/// Queries and keys of qkv with the dimensions of each head in the order that Rotary turns: where only the first `turned`
/// do, in pairs (i, i + turned / 2), the others are put between the halves. Scores do not depend on the order.
at::Tensor heads_in_order(const at::Tensor& qkv, const AttentionShape& shape, std::int64_t turned);

}  // namespace zero
