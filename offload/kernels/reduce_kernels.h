#pragma once
// Reductions over flat host tensors that give the same bits for any number of threads and any kind of processor.
#include <ATen/core/Tensor.h>

#include "base/numbers/exact_sum.h"

namespace zero {

/// What one shard contributes to the global gradient norm.
struct NormPart {
  double sum_of_squares = 0;
  bool finite = true;  // no infinity and no NaN among the elements (fp64: nor a square beyond its range)
};

/// Sum of squares of a contiguous fp32, bf16, fp16 or fp64 tensor, accumulated in fp64 along a fixed tree: 32 lanes
/// inside blocks of 32768 elements, then pairwise. An undefined or empty tensor gives {0, true}.
NormPart sum_of_squares(const at::Tensor& flat);

/// The same added to a sum that knows no order. Blocks of `exact_block` elements are summed in fp64 along a tree, and blocks
/// exactly: however a vector is divided at whole blocks, the sum is the same to the last bit.
void add_squares(ExactSum& sum, const at::Tensor& flat);
inline constexpr int exact_block = 32;

/// Writes source, converted to nearest even, into destination (contiguous, same number of elements), or adds it:
/// destination + source is computed in fp32 (fp64 where the destination is) and rounded once. Invisible to autograd.
/// A source that is not contiguous is read through a contiguous copy.
void pack(const at::Tensor& destination_flat, const at::Tensor& source, bool accumulate);

}  // namespace zero
