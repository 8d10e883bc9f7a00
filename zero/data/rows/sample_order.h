#pragma once
// SampleOrder: which rows a step trains on. A pure function of (rows, seed, step), whatever the number of ranks, so a
// run that resumes at step s simply asks for step s.
#include <cstdint>
#include <vector>

namespace zero {

/// The numbers 0 .. n-1 in the order of one epoch: a Fisher-Yates shuffle driven by SplitMix64 (Steele, Lea, Flood
/// 2014) with Lemire's unbiased bounded draw, seeded by (seed, epoch). Equal on every platform.
std::vector<std::uint32_t> permutation(std::int64_t n, std::uint64_t seed, std::uint64_t epoch);

struct SampleOrderOptions {
  std::int64_t rows = 0;
  std::int64_t global_batch_size = 1;
  std::uint64_t seed = 0;
  bool shuffle = true;  // off: the order of the files, in every epoch
};

/// The epochs' orders, one after the other, cut into steps of global_batch_size rows: what an epoch leaves over comes
/// first in the step that the next epoch completes. Holds the permutation of one epoch. Not thread-safe.
class SampleOrder {
 public:
  /// InputError when there are no rows, or more than 2^32.
  explicit SampleOrder(SampleOrderOptions options);

  /// The rows of one step, counted from 0.
  std::vector<std::int64_t> rows_of_step(std::int64_t step);

  /// floor(epochs x rows / global_batch_size), at least one.
  std::int64_t steps_of(double epochs) const;

  /// Epochs completed after `steps` steps.
  double epochs_after(std::int64_t steps) const;

  const SampleOrderOptions& options() const { return options_; }

 private:
  SampleOrderOptions options_;
  std::int64_t epoch_ = -1;  // the epoch that permutation_ belongs to
  std::vector<std::uint32_t> permutation_;
};

}  // namespace zero
