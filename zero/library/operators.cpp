#include "zero/library/include/zero/operators.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/log.h"
#include "models/ops/cross_entropy.h"
#include "models/ops/rms_norm.h"
#include "models/ops/swiglu.h"

namespace zero {
namespace {

/// Reshapes to [rows, last dimension], contiguous.
torch::Tensor rows_of(const torch::Tensor& x, const char* function, const char* name) {
  if (!x.defined() || x.dim() == 0)
    throw Error(text("zero::", function, ": ", name, x.defined() ? " has no dimensions" : " is undefined",
                     ", and must have rows, its last dimension"));
  return (x.dim() == 1 ? x.unsqueeze(0) : x.flatten(0, -2)).contiguous();
}

}  // namespace

torch::Tensor fused_rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps) {
  return rms_norm(rows_of(x, "fused_rms_norm", "x"), weight, eps).y.view(x.sizes());
}

torch::Tensor fused_swiglu(const torch::Tensor& gate_up) {
  const torch::Tensor y = swiglu(rows_of(gate_up, "fused_swiglu", "gate_up"));
  std::vector<std::int64_t> shape = gate_up.sizes().vec();
  shape.back() = y.size(1);
  return y.view(shape);
}

torch::Tensor fused_cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets) {
  if (!logits.defined() || !targets.defined())
    throw Error("zero::fused_cross_entropy: logits and targets must be defined");
  return cross_entropy(logits.contiguous(), targets.contiguous()).loss;
}

}  // namespace zero
