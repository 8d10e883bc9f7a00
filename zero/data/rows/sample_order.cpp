#include "zero/data/rows/sample_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"

namespace zero {
namespace {

std::vector<double> weights_of(const SampleOrderOptions& options) {
  std::vector<double> weights;
  for (const WeightedRows& source : options.sources) weights.push_back(source.weight);
  return weights.empty() ? std::vector<double>{1} : weights;
}

/// Two sources with the same number of rows are shuffled differently.
std::uint64_t seed_of(std::uint64_t seed, std::size_t source) { return source == 0 ? seed : mix_seed(seed, source); }

}  // namespace

SampleOrder::SampleOrder(SampleOrderOptions options) : options_(std::move(options)), turns_(weights_of(options_)) {
  if (options_.rows < 1) throw InputError("the training data holds no row to train on");
  if (options_.rows > (std::int64_t{1} << 32))
    throw InputError(
        text("the training data has ", options_.rows, " rows; at most 2^32 are possible: use a longer seq_len"));
  ZERO_CHECK(options_.global_batch_size > 0, "a step takes at least one row");
  std::vector<WeightedRows> parts = options_.sources;
  if (parts.empty()) parts.push_back({options_.rows, 1});
  std::int64_t first = 0;
  for (const WeightedRows& part : parts) {
    ZERO_CHECK(part.rows > 0, "a source has a row");
    sources_.push_back({first, EpochOrder(part.rows, seed_of(options_.seed, sources_.size()), options_.shuffle)});
    first += part.rows;
  }
  ZERO_CHECK(first == options_.rows, "the sources are parts of the rows");
}

std::vector<std::int64_t> SampleOrder::rows_of_step(std::int64_t step) {
  ZERO_CHECK(step >= 0, text("step ", step));
  std::vector<std::int64_t> taken;
  taken.reserve(static_cast<std::size_t>(options_.global_batch_size));
  for (std::int64_t i = 0; i < options_.global_batch_size; ++i) {
    const Turn turn = turns_.at(step * options_.global_batch_size + i);
    Source& source = sources_[turn.source];
    taken.push_back(source.first + source.order.row(turn.place));
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

std::vector<SampleOrder::SourceUse> SampleOrder::use_after(std::int64_t steps) const {
  std::vector<SourceUse> uses;
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    const std::int64_t rows = sources_[source].order.rows();
    const std::int64_t given = turns_.given(source, steps * options_.global_batch_size);
    uses.push_back({rows, turns_.share(source), double(given) / double(rows)});
  }
  return uses;
}

}  // namespace zero
