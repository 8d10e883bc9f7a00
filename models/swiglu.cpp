#include "models/swiglu.h"

#include <ATen/ATen.h>

#include "models/precise_type.h"

namespace zero {

at::Tensor swiglu(const at::Tensor& gate_up) {
  const auto halves = gate_up.to(precise_type(gate_up.scalar_type())).chunk(2, 1);
  return (at::silu(halves[0]) * halves[1]).to(gate_up.scalar_type());
}

// With s = sigmoid(gate): d up = dy * gate * s, d gate = dy * up * s * (1 + gate * (1 - s)).
at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  const auto halves = gate_up.to(precise_type(gate_up.scalar_type())).chunk(2, 1);
  const at::Tensor &gate = halves[0], &up = halves[1];
  const at::Tensor d = dy.to(gate.scalar_type()), s = at::sigmoid(gate);
  return at::cat({d * up * s * (1 + gate * (1 - s)), d * gate * s}, 1).to(gate_up.scalar_type());
}

}  // namespace zero
