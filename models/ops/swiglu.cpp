#include "models/ops/swiglu.h"

#include <ATen/ATen.h>

#include "models/ops/cuda/device_rows.h"
#include "models/ops/precise_type.h"
#include "models/ops/row_dispatch.h"

namespace zero {

at::Tensor swiglu(const at::Tensor& gate_up) {
  if (cuda::takes_rows(gate_up)) return cuda::swiglu(gate_up);
  const std::int64_t inner = gate_up.size(1) / 2;
  at::Tensor y;
  const bool done = with_row_kernels(gate_up, [&]<class T>(T) {
    y = at::empty({gate_up.size(0), inner}, gate_up.options());
    by_rows(gate_up, gate_up.size(0), 2 * inner, [&](std::int64_t begin, std::int64_t end) {
      kernels::row_kernels<T>().swiglu(
          {read_of<T>(gate_up) + begin * 2 * inner, data_of<T>(y) + begin * inner, end - begin, inner});
    });
  });
  if (done) return y;
  const auto halves = gate_up.to(precise_type(gate_up.scalar_type())).chunk(2, 1);
  return (at::silu(halves[0]) * halves[1]).to(gate_up.scalar_type());
}

// With s = sigmoid(gate): d up = dy * gate * s, d gate = dy * up * s * (1 + gate * (1 - s)).
at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  if (cuda::takes_rows(gate_up)) return cuda::swiglu_backward(dy, gate_up);
  const std::int64_t inner = dy.size(1);
  at::Tensor dgate_up;
  const bool done = with_row_kernels(gate_up, [&]<class T>(T) {
    dgate_up = at::empty_like(gate_up);
    by_rows(gate_up, gate_up.size(0), 2 * inner, [&](std::int64_t begin, std::int64_t end) {
      kernels::row_kernels<T>().swiglu_backward({read_of<T>(dy) + begin * inner,
                                                 read_of<T>(gate_up) + begin * 2 * inner,
                                                 data_of<T>(dgate_up) + begin * 2 * inner, end - begin, inner});
    });
  });
  if (done) return dgate_up;
  const auto halves = gate_up.to(precise_type(gate_up.scalar_type())).chunk(2, 1);
  const at::Tensor &gate = halves[0], &up = halves[1];
  const at::Tensor d = dy.to(gate.scalar_type()), s = at::sigmoid(gate);
  return at::cat({d * up * s * (1 + gate * (1 - s)), d * gate * s}, 1).to(gate_up.scalar_type());
}

}  // namespace zero
