#pragma once
// BackwardHooks: the moments of a backward pass at which a unit's weights are unsharded and resharded. It works without
// module hooks.
//
//   before_forward(i); x = enter_unit(x); y = body(x); y = exit_unit(y); after_forward(i)
//
// enter_unit and exit_unit are identities that autograd visits in reverse. The exit's backward runs before any gradient
// of the unit is computed, and the entry's backward after all of them. The last trainable gradient would come too
// early: it is ready before frozen weights have computed the input's gradient. The identities return views. An in-place
// write to a unit's output is therefore an error, and cannot silently remove the exit.
#include <ATen/core/Tensor.h>

namespace zero {

/// Receives the two calls of the backward pass, on the thread that runs it.
class BackwardHooks {
 public:
  virtual ~BackwardHooks() = default;
  virtual void before_backward(int unit) = 0;
  virtual void after_backward(int unit) = 0;
};

/// Returns x for the unit to use. An x without gradient is returned unchanged. after_backward is then not called, and
/// the caller closes the unit after backward has returned. The hooks must outlive the backward pass.
at::Tensor enter_unit(const at::Tensor& x, BackwardHooks& hooks, int unit);

/// Returns y for the next unit to use. A y without gradient is returned unchanged.
at::Tensor exit_unit(const at::Tensor& y, BackwardHooks& hooks, int unit);

}  // namespace zero
