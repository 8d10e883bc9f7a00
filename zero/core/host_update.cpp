#include "zero/core/host_update.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "offload/memory/host_tensor.h"

namespace zero {

std::int64_t HostUpdate::Shape::bytes() const {
  const auto size = [](const std::optional<at::ScalarType>& type) { return type ? c10::elementSize(*type) : 0; };
  return numel * std::int64_t(size(gradient) + size(weights));
}

HostUpdate::HostUpdate(const Shape& shape, at::Device device) : sent_(device) {
  if (shape.gradient) gradient_ = host_tensor(shape.numel, *shape.gradient, {MemoryCategory::gradients, device});
  if (shape.weights) weights_ = host_tensor(shape.numel, *shape.weights, {MemoryCategory::parameters, device});
}

void HostUpdate::send(const at::Tensor& gradient) {
  if (!gradient_.defined()) return;
  const at::NoGradGuard no_grad;
  gradient_.copy_(gradient, /*non_blocking=*/true);
  sent_.set();
}

void HostUpdate::take_weights(const at::Tensor& weights) {
  if (weights_.defined()) weights_.copy_(weights);
}

const at::Tensor& HostUpdate::begin(const at::Tensor& own) const {
  sent_.wait_on_host();  // returns at once if nothing is copied
  return weights_.defined() ? weights_ : own;
}

void HostUpdate::finish(const at::Tensor& own) const {
  if (!weights_.defined()) return;
  const at::NoGradGuard no_grad;
  own.copy_(weights_, /*non_blocking=*/true);
}

}  // namespace zero
