#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include "models/ops/backends.h"
#include "models/ops/row_dispatch.h"
#include "models/undivided.h"

namespace zero {

at::Tensor cpu::swiglu(const at::Tensor& gate_up) {
  at::Tensor y;
  const bool done = with_row_kernels({&gate_up}, [&]<class T>(T) {
    const std::int64_t inner = gate_up.size(1) / 2;
    y = at::empty({gate_up.size(0), inner}, gate_up.options());
    by_rows(gate_up, gate_up.size(0), 2 * inner, [&](std::int64_t begin, std::int64_t end) {
      kernels::row_kernels<T>().swiglu(
          {read_of<T>(gate_up) + begin * 2 * inner, data_of<T>(y) + begin * inner, end - begin, inner});
    });
  });
  return done ? y : composed::swiglu(gate_up);
}

at::Tensor cpu::swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  at::Tensor dgate_up;
  const bool done = with_row_kernels({&gate_up, &dy}, [&]<class T>(T) {
    const std::int64_t inner = dy.size(1);
    dgate_up = at::empty_like(gate_up);
    by_rows(gate_up, gate_up.size(0), 2 * inner, [&](std::int64_t begin, std::int64_t end) {
      kernels::row_kernels<T>().swiglu_backward({read_of<T>(dy) + begin * inner,
                                                 read_of<T>(gate_up) + begin * 2 * inner,
                                                 data_of<T>(dgate_up) + begin * 2 * inner, end - begin, inner});
    });
  });
  return done ? dgate_up : composed::swiglu_backward(dy, gate_up);
}

at::Tensor composed::swiglu(const at::Tensor& gate_up) {
  const Undivided functions;
  const auto halves = gate_up.to(at::toOpMathType(gate_up.scalar_type())).chunk(2, 1);
  return (at::silu(halves[0]) * halves[1]).to(gate_up.scalar_type());
}

// With s = sigmoid(gate): d up = dy * gate * s, d gate = dy * up * s * (1 + gate * (1 - s)).
at::Tensor composed::swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  const Undivided functions;
  const auto halves = gate_up.to(at::toOpMathType(gate_up.scalar_type())).chunk(2, 1);
  const at::Tensor &gate = halves[0], &up = halves[1];
  const at::Tensor d = dy.to(gate.scalar_type()), s = at::sigmoid(gate);
  return at::cat({d * up * s * (1 + gate * (1 - s)), d * gate * s}, 1).to(gate_up.scalar_type());
}

}  // namespace zero
