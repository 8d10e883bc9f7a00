#include <ATen/ATen.h>

#include "zero/library/sharded_impl.h"

namespace zero {

Frozen ShardedModel::freeze() {
  prepare();
  std::vector<at::Tensor> thawed;
  for (at::Tensor& parameter : impl_->module->parameters()) {
    if (!parameter.requires_grad()) continue;
    parameter.set_requires_grad(false);
    thawed.push_back(parameter);
  }
  return Frozen(std::move(thawed));
}

Frozen::Frozen(std::vector<at::Tensor> thawed) : thawed_(std::move(thawed)) {}
Frozen::~Frozen() {
  for (const at::Tensor& parameter : thawed_) parameter.set_requires_grad(true);
}

}  // namespace zero
