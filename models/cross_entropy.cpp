#include "models/cross_entropy.h"

#include <ATen/ATen.h>

#include "models/precise_type.h"

namespace zero {

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor precise = logits.to(precise_type(logits.scalar_type()));
  const at::Tensor lse = precise.logsumexp(1);
  return {(lse - precise.gather(1, targets.unsqueeze(1)).squeeze(1)).sum(), lse};
}

void cross_entropy_backward_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse, const at::Tensor& scale) {
  at::Tensor d = logits.to(lse.scalar_type()).sub_(lse.unsqueeze(1)).exp_();
  d.scatter_add_(1, targets.unsqueeze(1), at::full({targets.size(0), 1}, -1.0, d.options()));
  logits.copy_(d.mul_(scale));
}

}  // namespace zero
