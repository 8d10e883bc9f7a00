#pragma once
// BackwardHooks: the points of a unit at which weights are unsharded and resharded, without module hooks. This file has
// the two points of the backward.
//
//   before_forward(i); x = enter_unit(x); y = body(x); y = exit_unit(y); after_forward(i)
//
// enter_unit and exit_unit are identities that autograd visits in reverse. The exit's backward runs before any gradient
// of the unit is computed, and the entry's after all of them. The last trainable gradient would be too early a sign:
// with frozen weights it is ready before they have served the input's gradient. The identities return views, so an
// in-place write on a unit's output is an error instead of a silent loss of the exit.
#include <ATen/core/Tensor.h>

namespace zero {

/// Receives the two points of the backward pass, on the thread that runs it.
class BackwardHooks {
 public:
  virtual ~BackwardHooks() = default;
  virtual void before_backward(int unit) = 0;
  virtual void after_backward(int unit) = 0;
};

/// Returns x for the unit to use. An x without gradient is returned as it is. after_backward is then not called, and
/// the caller closes the unit when backward has returned. The hooks outlive the backward pass.
at::Tensor enter_unit(const at::Tensor& x, BackwardHooks& hooks, int unit);

/// Returns y for the next unit to use. Without gradient as above.
at::Tensor exit_unit(const at::Tensor& y, BackwardHooks& hooks, int unit);

}  // namespace zero
