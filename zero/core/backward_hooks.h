#pragma once
// BackwardHooks: the two points of a unit's backward at which weights come and go, without module hooks.
//
//   before_forward(i); x = enter_unit(x); y = body(x); y = exit_unit(y); after_forward(i)
//
// enter_unit and exit_unit are identities. Autograd reaches them in reverse: the exit's backward runs before any of the
// unit's gradients are computed, the entry's after all of them. The last gradient would be no sign of the end: with frozen
// weights it is ready before the frozen weights have been used for the input's gradient. The identities return views, so
// an in-place write on a unit's output is an error instead of a silent loss of the exit.
#include <ATen/core/Tensor.h>

namespace zero {

/// Told of the two points of the backward pass. Called on the thread that runs backward.
class BackwardHooks {
 public:
  virtual ~BackwardHooks() = default;
  virtual void before_backward(int unit) = 0;
  virtual void after_backward(int unit) = 0;
};

/// Returns x, for the unit to use. An x without gradient is returned as it is: after_backward will then not be called for
/// it, and the caller closes the unit when backward has returned. The hooks outlive the backward pass.
at::Tensor enter_unit(const at::Tensor& x, BackwardHooks& hooks, int unit);

/// Returns y, for the next unit to use. Without gradient as above.
at::Tensor exit_unit(const at::Tensor& y, BackwardHooks& hooks, int unit);

}  // namespace zero
