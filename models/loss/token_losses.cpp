#include "models/loss/token_losses.h"

#include <ATen/ATen.h>

#include <limits>

#include "models/ops/cross_entropy.h"

namespace zero {

at::Tensor token_losses(at::Tensor& logits, const at::Tensor& targets, const at::Tensor* scale,
                        const at::Tensor& weights) {
  const at::Tensor places = targets.clamp(0, logits.size(1) - 1).unsqueeze(1);
  const at::Tensor chosen = logits.gather(1, places).squeeze(1);  // before logits become their gradient
  at::Tensor factors = scale ? *scale : at::Tensor();
  if (scale && weights.defined()) factors = weights.to(scale->scalar_type()).mul(*scale).contiguous();
  const at::Tensor lse =
      (scale ? cross_entropy_gradient_(logits, targets, factors) : cross_entropy(logits, targets)).lse;
  const at::Tensor losses = lse - chosen.to(lse.scalar_type());
  if (targets.is_cpu() || targets.is_meta()) return losses;
  return losses.masked_fill(targets < 0, 0)
      .masked_fill(targets >= logits.size(1), std::numeric_limits<double>::quiet_NaN());
}

}  // namespace zero
