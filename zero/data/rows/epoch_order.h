#pragma once
// EpochOrder: the rows of one source in the order of its epochs, without end. No LibTorch.
#include <cstdint>
#include <vector>

namespace zero {

/// Returns the numbers 0 .. n-1 in the order of one epoch, equal on every platform. It is a Fisher-Yates shuffle with
/// SplitMix64 (Steele, Lea, Flood 2014) and Lemire's unbiased bounded draw, seeded by (seed, epoch).
std::vector<std::uint32_t> permutation(std::int64_t n, std::uint64_t seed, std::uint64_t epoch);

/// Each epoch holds every row once, shuffled anew. One epoch's permutation is in memory. Not thread-safe.
class EpochOrder {
 public:
  /// Without `shuffle` every epoch has the order of the file.
  EpochOrder(std::int64_t rows, std::uint64_t seed, bool shuffle) : rows_(rows), seed_(seed), shuffle_(shuffle) {}

  std::int64_t rows() const { return rows_; }

  /// The row at a place of the concatenated epochs, from 0.
  std::int64_t row(std::int64_t place);

 private:
  std::int64_t rows_;
  std::uint64_t seed_;
  bool shuffle_;
  std::int64_t epoch_ = -1;  // epoch of permutation_
  std::vector<std::uint32_t> permutation_;
};

}  // namespace zero
