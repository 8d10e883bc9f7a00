#include "zero/library/include/zero/operators.h"

#include <ATen/ATen.h>

#include "models/ops/cross_entropy.h"
#include "models/ops/rms_norm.h"
#include "models/ops/swiglu.h"

namespace zero {

torch::Tensor fused_rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps) {
  return rms_norm(x.reshape({-1, x.size(-1)}).contiguous(), weight, eps).y.view(x.sizes());
}

torch::Tensor fused_swiglu(const torch::Tensor& gate_up) {
  std::vector<std::int64_t> shape = gate_up.sizes().vec();
  shape.back() /= 2;
  return swiglu(gate_up.reshape({-1, gate_up.size(-1)}).contiguous()).view(shape);
}

torch::Tensor fused_cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets) {
  return cross_entropy(logits.contiguous(), targets.contiguous()).loss;
}

}  // namespace zero
