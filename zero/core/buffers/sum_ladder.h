#pragma once
// SumLadder: the sum of vectors that come one after the other, along the tree of comm/sum_tree.h over their number in the
// order of coming. Of n vectors, log2(n) + 1 are held at most: a partial sum stands on its rung until the vectors beside
// its own have become one of the same size.
#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace zero {

class SumLadder {
 public:
  /// How many tensors it takes.
  static int rungs(std::int64_t vectors) { return std::bit_width(std::uint64_t(vectors)); }
  /// Of one shape and type, in which partial sums are rounded.
  explicit SumLadder(std::vector<at::Tensor> rungs) : rungs_(std::move(rungs)) {}

  /// Where the next vector is to be put; then push().
  const at::Tensor& place() const { return rungs_.at(summed_.size()); }
  void push() {
    summed_.push_back(1);
    while (summed_.size() > 1 && summed_.back() == summed_[summed_.size() - 2]) join();
  }
  /// After the last one: its sum, which the first rung holds. The next vector begins another.
  const at::Tensor& conclude() {
    while (summed_.size() > 1) join();
    summed_.clear();
    return rungs_.front();
  }
  void clear() { summed_.clear(); }

 private:
  void join() {
    const std::size_t last = summed_.size() - 1;
    rungs_[last - 1].add_(rungs_[last]);
    summed_[last - 1] += summed_[last];
    summed_.pop_back();
  }

  std::vector<at::Tensor> rungs_;
  std::vector<std::int64_t> summed_;  // vectors, by rung
};

}  // namespace zero
