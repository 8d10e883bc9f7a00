#pragma once
// Recompute: activation checkpointing of one unit. Forward keeps the unit's input alone; backward runs the body again.
//
// It sits inside the unit's boundaries, always. The trainable parameters are inputs of the autograd function: a unit whose
// input needs no gradient (block 0 over a frozen embedding) would otherwise train nothing, silently. Random draws come
// from the pass's seed, so running the body again draws the same.
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace zero {

/// The unit's computation; it must outlive the backward pass and give the same result every time.
using UnitBody = std::function<at::Tensor(const at::Tensor& x)>;

/// body(x), whose saved tensors are made again in backward. `trainable` are the leaves that the body uses.
at::Tensor recompute(const UnitBody& body, const at::Tensor& x, const std::vector<at::Tensor>& trainable);

}  // namespace zero
