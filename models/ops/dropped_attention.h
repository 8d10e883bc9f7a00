#pragma once
// Attention with dropout of its probabilities, for every type and device: explicit products in fp32 (fp64 for fp64),
// one head at a time. It keeps its arguments alone. Backward computes probabilities and masks again.
#include <ATen/core/Tensor.h>

#include "models/ops/backends.h"

namespace zero {

/// Returns what composed::attend() returns, with the probabilities dropped by options.dropout. Only here may
/// `mask` be either bool or numbers that are added to the scores.
at::Tensor dropped_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                             const composed::AttendOptions& options);

}  // namespace zero
