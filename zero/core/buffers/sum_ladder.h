#pragma once
// SumLadder: sums vectors that arrive one after the other, along the tree of comm/sum_tree.h, in order of arrival. For
// n vectors it holds at most log2(n) + 1 vectors. A partial sum waits on its rung until the vectors that follow have
// formed a sum of equally many vectors.
#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace zero {

class SumLadder {
 public:
  /// Returns the number of tensors that the constructor needs.
  static int rungs(std::int64_t vectors) { return std::bit_width(std::uint64_t(vectors)); }
  /// The tensors have one shape and one type, to which partial sums are rounded.
  explicit SumLadder(std::vector<at::Tensor> rungs) : rungs_(std::move(rungs)) {}

  /// The caller writes the next vector here, then calls push().
  const at::Tensor& place() const { return rungs_.at(summed_.size()); }
  void push() {
    summed_.push_back(1);
    while (summed_.size() > 1 && summed_.back() == summed_[summed_.size() - 2]) join();
  }
  /// Call it after the last vector. Returns the sum, which is on the first rung. The next vector begins a new sum.
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
  std::vector<std::int64_t> summed_;  // number of vectors summed, by rung
};

}  // namespace zero
