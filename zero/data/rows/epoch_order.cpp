#include "zero/data/rows/epoch_order.h"

#include <numeric>
#include <utility>

#include "base/random.h"

namespace zero {

std::vector<std::uint32_t> permutation(std::int64_t n, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::uint32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0U);
  SplitMix64 random(splitmix64(seed) ^ mix_bits(epoch));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

std::int64_t EpochOrder::row(std::int64_t place) {
  const std::int64_t epoch = place / rows_, index = place % rows_;
  if (!shuffle_) return index;
  if (epoch != epoch_) {
    permutation_ = permutation(rows_, seed_, static_cast<std::uint64_t>(epoch));
    epoch_ = epoch;
  }
  return permutation_[static_cast<std::size_t>(index)];
}

}  // namespace zero
