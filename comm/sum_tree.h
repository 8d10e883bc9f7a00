#pragma once
// The sum over ranks that every CPU backend uses. Its order is fixed, so all backends and all message sizes give the
// same bits.
//
// N inputs are summed along a balanced binary tree: neighbours first, (0+1)+(2+3), then pairs of pairs. A range of n
// inputs splits at the largest power of two below n. An aligned block of 2^k inputs is therefore a subtree.
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <span>

namespace zero {

struct SumInputs {
  std::span<const void* const> pointers;  // one per rank, in the order of ranks
  at::ScalarType type;
};

struct SumOutput {
  void* pointer;  // may be one of the inputs if it has their type
  at::ScalarType type;
  bool accumulate = false;  // out = round(out + sum) instead of round(sum)
};

/// output [numel] <- the tree sum of inputs [numel]. For fp32, fp64, bf16 and fp16, partial sums are held in `sum_type`
/// (fp32 or fp64) and rounded once, to the output's type. For int32 and int64 all three types must be equal. Throws
/// InternalError for other types.
void sum_tree(const SumInputs& inputs, const SumOutput& output, std::int64_t numel, at::ScalarType sum_type);

}  // namespace zero
