#include "models/nn/activation.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include "base/error.h"
#include "models/undivided.h"

namespace zero {
namespace {

at::Tensor value(const at::Tensor& x, Activation function) {
  switch (function) {
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu:
      return at::gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::relu:
      return at::clamp_min(x, 0);
  }
  throw InternalError("unknown activation");
}

at::Tensor derivative_times(const at::Tensor& dy, const at::Tensor& x, Activation function) {
  switch (function) {
    case Activation::silu:
      return at::silu_backward(dy, x);
    case Activation::gelu:
      return at::gelu_backward(dy, x);
    case Activation::gelu_tanh:
      return at::gelu_backward(dy, x, "tanh");
    case Activation::relu:
      return at::threshold_backward(dy, x, 0);
  }
  throw InternalError("unknown activation");
}

at::Tensor precise(const at::Tensor& x) { return x.to(at::toOpMathType(x.scalar_type())); }

}  // namespace

at::Tensor activate(const at::Tensor& x, const ActivationKind& kind) {
  const Undivided functions;
  if (!kind.gated) return value(precise(x), kind.function).to(x.scalar_type());
  const auto halves = x.chunk(2, 1);
  return value(precise(halves[0]), kind.function).mul_(halves[1]).to(x.scalar_type());
}

at::Tensor activate_backward(const at::Tensor& dy, const at::Tensor& x, const ActivationKind& kind) {
  const Undivided functions;
  if (!kind.gated) return derivative_times(precise(dy), precise(x), kind.function).to(x.scalar_type());
  const auto halves = x.chunk(2, 1);
  const at::Tensor gate = precise(halves[0]), d = precise(dy);
  const at::Tensor dx = at::empty_like(x);
  dx.narrow(1, dy.size(1), dy.size(1)).copy_(value(gate, kind.function).mul_(d));
  dx.narrow(1, 0, dy.size(1)).copy_(derivative_times(d * halves[1], gate, kind.function));
  return dx;
}

}  // namespace zero
