#pragma once
// The embedding's table lookup.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace zero {

/// Looks up rows `ids` [B, T] int64 of weight [vocabulary, hidden] and returns [B, T, hidden]. If a row occurs several
/// times, its gradient is summed in fp32 (fp64 for fp64), always in the same order, and rounded once.
at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight);

/// Does the same for a slice: `weight` holds rows of the full table, starting at row `first`. Ids outside the slice
/// return zeros.
at::Tensor embed_slice(const at::Tensor& ids, const at::Tensor& weight, std::int64_t first);

}  // namespace zero
