#pragma once
// Precision: the number types of a run.
#include <c10/core/ScalarType.h>

namespace zero {

struct Precision {
  at::ScalarType compute = at::kBFloat16;   // weights as modules see them and as gathers move them; activations
  at::ScalarType master = at::kFloat;       // weights as the optimizer sees them, and its moments; kDouble for fp64
  at::ScalarType gradient = at::kBFloat16;  // gradients at rest
  at::ScalarType sum = at::kFloat;          // sums over ranks are accumulated in it and rounded once; kDouble for fp64

  /// In fp32 and fp64 the weights are their own master, so there is no second copy.
  bool weights_are_master() const { return compute == master; }
};

}  // namespace zero
