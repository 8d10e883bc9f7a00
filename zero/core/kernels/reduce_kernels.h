#pragma once
// Reductions over flat host tensors, with the same bits for any number of threads and any kind of processor.
#include <ATen/core/Tensor.h>

#include "base/numbers/exact_sum.h"

namespace zero {

/// One shard's contribution to the global gradient norm.
struct NormPart {
  double sum_of_squares = 0;
  bool finite = true;  // no element, and for fp64 no square, is an infinity or a NaN
};

/// Sum of squares of a contiguous fp32, bf16, fp16 or fp64 tensor. It is accumulated in fp64 along a fixed tree: 32
/// lanes inside blocks of 32768 elements, then pairwise. An undefined or empty tensor gives {0, true}.
NormPart sum_of_squares(const at::Tensor& flat);

/// Adds the same to a sum that does not depend on order. Blocks of `exact_block` elements are summed in fp64 along a
/// tree, and blocks are added exactly. Any division of a vector at whole blocks gives the same sum to the last bit.
void add_squares(ExactSum& sum, const at::Tensor& flat);
inline constexpr int exact_block = 32;

/// Writes source, converted to nearest even, into destination (contiguous, same number of elements), or adds it. An
/// addition is computed in fp32 (fp64 if the destination is) and rounded once. Autograd does not see it. A source that
/// is not contiguous is read through a contiguous copy.
void pack(const at::Tensor& destination_flat, const at::Tensor& source, bool accumulate);

}  // namespace zero
