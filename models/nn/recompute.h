#pragma once
// Recompute: activation checkpointing of a computation. Forward keeps only its input; backward runs the body again.
//
// The recomputation of a whole unit always lies inside the unit's boundaries. The trainable parameters are inputs of
// the autograd function. Otherwise a body whose input needs no gradient (block 0 over a frozen embedding) would
// silently train nothing. Random draws come from the pass's seed, so running the body again draws the same.
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace zero {

/// A computation that gives the same result every time. Its captures must outlive the backward pass.
using RecomputedBody = std::function<at::Tensor(const at::Tensor& x)>;

/// body(x). Backward recomputes its saved tensors. `trainable` are the leaves that the body uses.
at::Tensor recompute(RecomputedBody body, const at::Tensor& x, const std::vector<at::Tensor>& trainable);

}  // namespace zero
