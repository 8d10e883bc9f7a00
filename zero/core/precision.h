#pragma once
// Precision: the number types of a run.
#include <c10/core/ScalarType.h>

namespace zero {

struct Precision {
  at::ScalarType compute = at::kBFloat16;   // weights as modules see them, activations, what gathers move
  at::ScalarType master = at::kFloat;       // weights as the optimizer sees them, and its moments; kDouble for fp64
  at::ScalarType gradient = at::kBFloat16;  // gradients at rest
  at::ScalarType sum = at::kFloat;          // sums over ranks are held in it and rounded once; kDouble for fp64

  /// In fp32 and fp64 the weights are their own master: no second copy exists.
  bool weights_are_master() const { return compute == master; }
};

}  // namespace zero
