#pragma once
// Reductions over flat host tensors. Results are the same bit for bit for any number of threads and any kind of
// processor.
#include <ATen/core/Tensor.h>

#include "base/numbers/exact_sum.h"

namespace zero {

/// One shard's contribution to the global gradient norm.
struct NormPart {
  double sum_of_squares = 0;
  bool finite = true;  // no element, and for fp64 no square, is an infinity or a NaN
};

/// Sum of squares of a contiguous fp32, bf16, fp16 or fp64 tensor. It is accumulated in fp64 along a fixed tree: 32
/// lanes inside blocks of 32768 elements, then pairwise. Returns {0, true} for an undefined or empty tensor.
NormPart sum_of_squares(const at::Tensor& flat);

/// Adds the sum of squares to a sum that does not depend on order. Blocks of `exact_block` elements are summed in fp64
/// along a tree, and blocks are added exactly. If a vector is divided at block boundaries, the sum is the same bit for
/// bit.
void add_squares(ExactSum& sum, const at::Tensor& flat);
inline constexpr int exact_block = 32;

/// Writes source into destination (contiguous, same number of elements), or adds source to it. Conversions round to
/// nearest even. An addition is computed in fp32 (fp64 if the destination is fp64) and rounded once. Autograd does not
/// record it. A source that is not contiguous is read through a contiguous copy.
void pack(const at::Tensor& destination_flat, const at::Tensor& source, bool accumulate);

}  // namespace zero
