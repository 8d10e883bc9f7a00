#pragma once
// SampleOrder: the rows that each step trains on. It is a pure function of (rows, seed, step), independent of the
// number of ranks. A run that resumes at step s simply continues with step s.
#include <cstdint>
#include <vector>

namespace zero {

/// Returns the numbers 0 .. n-1 in the order of one epoch, equal on every platform. It is a Fisher-Yates shuffle with
/// SplitMix64 (Steele, Lea, Flood 2014) and Lemire's unbiased bounded draw, seeded by (seed, epoch).
std::vector<std::uint32_t> permutation(std::int64_t n, std::uint64_t seed, std::uint64_t epoch);

struct SampleOrderOptions {
  std::int64_t rows = 0;
  std::int64_t global_batch_size = 1;
  std::uint64_t seed = 0;
  bool shuffle = true;  // false: file order in every epoch
};

/// The orders of all epochs, concatenated and divided into steps of global_batch_size rows. A step may span epochs. One
/// epoch's permutation is in memory. Not thread-safe.
class SampleOrder {
 public:
  /// Throws InputError for no rows, or for more than 2^32 rows.
  explicit SampleOrder(SampleOrderOptions options);

  /// The rows of one step; steps count from 0.
  std::vector<std::int64_t> rows_of_step(std::int64_t step);

  /// Returns floor(epochs x rows / global_batch_size), but at least one.
  std::int64_t steps_of(double epochs) const;

  /// Returns the epochs completed after `steps` steps.
  double epochs_after(std::int64_t steps) const;

  const SampleOrderOptions& options() const { return options_; }

 private:
  SampleOrderOptions options_;
  std::int64_t epoch_ = -1;  // epoch of permutation_
  std::vector<std::uint32_t> permutation_;
};

}  // namespace zero
