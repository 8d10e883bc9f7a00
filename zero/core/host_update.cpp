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

void HostUpdate::update(const at::Tensor& weights, bool writes,
                        const std::function<void(const at::Tensor& weights)>& run) {
  const at::NoGradGuard no_grad;
  sent_.wait_on_host();  // of nothing where nothing travels
  run(weights_.defined() ? weights_ : weights);
  if (writes && weights_.defined()) weights.copy_(weights_, /*non_blocking=*/true);
}

}  // namespace zero
