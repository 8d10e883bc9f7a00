#include "zero/optim/statistics.h"

#include <ATen/ATen.h>

#include "zero/optim/optimizer.h"

namespace zero {
namespace {

std::int64_t numel_of(const std::vector<StatisticSpec>& specs) {
  std::int64_t numel = 0;
  for (const StatisticSpec& spec : specs) numel += spec.numel;
  return numel;
}

}  // namespace

Statistics::Statistics(const Optimizer& optimizer, const std::vector<std::vector<std::int64_t>>& shapes,
                       at::Device device)
    : shapes_(shapes) {
  Place end;
  for (const auto& shape : shapes) {
    places_.push_back(end);
    end.kept += numel_of(optimizer.statistics(shape));
    end.sums += optimizer.sums(shape);
  }
  places_.push_back(end);
  end.kept += numel_of(optimizer.run_statistics());
  end.sums += optimizer.run_sums();
  const at::TensorOptions options = at::TensorOptions().dtype(at::kDouble).device(device);
  kept_ = at::zeros({end.kept}, options);
  sums_ = at::zeros({end.sums}, options);
}

at::Tensor Statistics::part(const at::Tensor& all, int index, std::int64_t Place::*begin) const {
  const std::int64_t first = places_.at(std::size_t(index)).*begin;
  const std::int64_t end = index < tensors() ? places_[std::size_t(index) + 1].*begin : all.numel();
  return all.narrow(0, first, end - first);
}

}  // namespace zero
