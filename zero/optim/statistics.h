#pragma once
// Statistics: fp64 numbers of tensors and of the run, equal on all ranks, and the sums from which they are computed.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

class Optimizer;

struct StatisticSpec {
  std::string name;  // empty: lasts for one step only
  std::int64_t numel = 0;
};

class Statistics {
 public:
  /// Starts as zeros. `shapes`: the shapes of the tensors that the optimizer updates, in order.
  Statistics(const Optimizer& optimizer, const std::vector<std::vector<std::int64_t>>& shapes, at::Device device);

  int tensors() const { return int(places_.size()) - 1; }
  const std::vector<std::int64_t>& shape(int tensor) const { return shapes_[std::size_t(tensor)]; }

  /// Flat fp64 views. A tensor's statistics follow each other in order.
  at::Tensor kept(int tensor) const { return part(kept_, tensor, &Place::kept); }
  at::Tensor sums(int tensor) const { return part(sums_, tensor, &Place::sums); }
  at::Tensor kept_of_run() const { return part(kept_, tensors(), &Place::kept); }
  at::Tensor sums_of_run() const { return part(sums_, tensors(), &Place::sums); }

  const at::Tensor& all_kept() const { return kept_; }
  const at::Tensor& all_sums() const { return sums_; }

 private:
  struct Place {
    std::int64_t kept = 0, sums = 0;
  };
  at::Tensor part(const at::Tensor& all, int index, std::int64_t Place::*begin) const;

  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<Place> places_;  // of each tensor, then of the run
  at::Tensor kept_, sums_;
};

}  // namespace zero
