#pragma once
// The embedding's table look-up.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace zero {

/// Rows `ids` [B, T] int64 of weight [vocabulary, hidden]: [B, T, hidden]. The gradient of a row that occurs several
/// times is summed in fp32 (fp64 in fp64), always in the same order, and rounded once.
at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight);

/// The same from a slice: weight holds rows [first, first + its rows) of the full one. Other ids give zeros.
at::Tensor embed_slice(const at::Tensor& ids, const at::Tensor& weight, std::int64_t first);

}  // namespace zero
