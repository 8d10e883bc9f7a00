#pragma once
// Recompute: activation checkpointing of a computation. Forward keeps its input alone; backward runs the body again.
//
// A whole unit's sits inside the unit's boundaries, always. The trainable parameters are inputs of the autograd
// function: a body whose input needs no gradient (block 0 over a frozen embedding) would otherwise train nothing,
// silently. Random draws come from the pass's seed, so running the body again draws the same.
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace zero {

/// A computation that gives the same result every time. What it refers to must outlive the backward pass.
using RecomputedBody = std::function<at::Tensor(const at::Tensor& x)>;

/// body(x), whose saved tensors are made again in backward. `trainable` are the leaves that the body uses.
at::Tensor recompute(RecomputedBody body, const at::Tensor& x, const std::vector<at::Tensor>& trainable);

}  // namespace zero
