#include "zero/data/rows/sample_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"

namespace zero {
std::vector<std::uint32_t> permutation(std::int64_t n, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::uint32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0U);
  SplitMix64 random(splitmix64(seed) ^ mix_bits(epoch));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

SampleOrder::SampleOrder(SampleOrderOptions options) : options_(options) {
  if (options_.rows < 1) throw InputError("the training data holds no row to train on");
  if (options_.rows > (std::int64_t{1} << 32))
    throw InputError(
        text("the training data has ", options_.rows, " rows; at most 2^32 are possible: use a longer seq_len"));
  ZERO_CHECK(options_.global_batch_size > 0, "a step takes at least one row");
}

std::vector<std::int64_t> SampleOrder::rows_of_step(std::int64_t step) {
  ZERO_CHECK(step >= 0, text("step ", step));
  const std::int64_t rows = options_.rows;
  std::vector<std::int64_t> taken;
  taken.reserve(static_cast<std::size_t>(options_.global_batch_size));
  for (std::int64_t i = 0; i < options_.global_batch_size; ++i) {
    const std::int64_t place = step * options_.global_batch_size + i, epoch = place / rows, index = place % rows;
    if (options_.shuffle && epoch != epoch_) {
      permutation_ = permutation(rows, options_.seed, static_cast<std::uint64_t>(epoch));
      epoch_ = epoch;
    }
    taken.push_back(options_.shuffle ? permutation_[static_cast<std::size_t>(index)] : index);
  }
  return taken;
}

std::int64_t SampleOrder::steps_of(double epochs) const {
  // The last factor keeps 0.29 epochs of 100 rows from becoming 28.999... rows.
  const double rows = epochs * static_cast<double>(options_.rows) * (1 + 1e-12);
  const double steps = std::floor(rows / static_cast<double>(options_.global_batch_size));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(steps));
}

double SampleOrder::epochs_after(std::int64_t steps) const {
  return static_cast<double>(steps) * static_cast<double>(options_.global_batch_size) /
         static_cast<double>(options_.rows);
}

}  // namespace zero
