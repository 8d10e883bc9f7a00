#include "zero/library/include/zero/metrics.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"

namespace zero {

MeanMetric::MeanMetric(const World& world) : world_(world) { reset(); }

void MeanMetric::reset() { sums_ = at::zeros({2}, at::TensorOptions().dtype(at::kDouble).device(world_.device())); }

void MeanMetric::update(const torch::Tensor& value, double weight) {
  if (value.numel() != 1)
    throw InputError("MeanMetric.update(): the value is a tensor of " + std::to_string(value.numel()) +
                     " elements, and must be a scalar: take its mean()");
  if (!(weight >= 0)) throw InputError("MeanMetric.update(): a weight of " + std::to_string(weight) + ": at least 0");
  if (weight == 0) return;
  const at::NoGradGuard no_grad;
  sums_[0].add_(value.detach().reshape({}).to(sums_.options()), weight);
  sums_[1].add_(weight);
}

double MeanMetric::compute() const {
  const at::Tensor all = world_.sum(sums_).cpu();
  const double weight = all[1].item<double>();
  if (weight == 0) throw InputError("MeanMetric.compute(): no process has a value with a weight above 0");
  return all[0].item<double>() / weight;
}

}  // namespace zero
