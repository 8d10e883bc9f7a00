#pragma once
// Recompute: activation checkpointing of a computation. Forward keeps only its input, and backward runs the body again.
//
// The recomputation of a whole unit always lies inside the unit's boundaries. The trainable parameters are inputs of
// the autograd function. Otherwise a body whose input needs no gradient (block 0 after a frozen embedding) would
// silently train nothing. Random draws come from the pass's seed, so the second run draws the same numbers.
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace zero {

/// A computation that gives the same result every time. Its captures must outlive the backward pass.
using RecomputedBody = std::function<at::Tensor(const at::Tensor& x)>;

/// The place that keeps x between forward and backward if autograd should not keep it. Both functions must outlive the
/// backward pass.
struct InputPlace {
  std::function<void(const at::Tensor& x)> keep;
  std::function<at::Tensor()> take;
};

/// Returns body(x). Backward recomputes the tensors that the body saves. `trainable` lists the leaves that the body
/// uses.
at::Tensor recompute(RecomputedBody body, const at::Tensor& x, const std::vector<at::Tensor>& trainable,
                     InputPlace place = {});

}  // namespace zero
