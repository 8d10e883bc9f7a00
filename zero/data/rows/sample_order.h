#pragma once
// SampleOrder: the rows that each step trains on. It is a pure function of (rows, weights, seed, step), independent of
// the number of ranks. A run that resumes at step s simply continues with step s.
#include <cstdint>
#include <vector>

#include "zero/data/rows/epoch_order.h"
#include "zero/data/rows/source_turns.h"

namespace zero {

/// A part of the rows that is drawn by its weight. Weights are relative to each other.
struct WeightedRows {
  std::int64_t rows = 0;
  double weight = 1;
};

struct SampleOrderOptions {
  std::int64_t rows = 0;
  std::int64_t global_batch_size = 1;
  std::uint64_t seed = 0;
  bool shuffle = true;                     // false: file order in every epoch
  std::vector<WeightedRows> sources = {};  // consecutive parts of the rows; empty: all rows are one source
};

/// Rows in an order without end, divided into steps of global_batch_size rows. SourceTurns says which source gives each
/// row, and an EpochOrder which of its rows. A step may span epochs. Not thread-safe.
class SampleOrder {
 public:
  /// Throws InputError for no rows, or for more than 2^32 rows.
  explicit SampleOrder(SampleOrderOptions options);

  /// The rows of one step; steps count from 0.
  std::vector<std::int64_t> rows_of_step(std::int64_t step);

  /// An epoch is as many rows as there are, with several sources too. Returns floor(epochs x rows / global_batch_size),
  /// but at least one.
  std::int64_t steps_of(double epochs) const;

  /// Returns the epochs completed after `steps` steps.
  double epochs_after(std::int64_t steps) const;

  /// How the rows of one source are used.
  struct SourceUse {
    std::int64_t rows = 0;
    double share = 1;   // of the rows of the run
    double epochs = 0;  // how often each of its rows is seen
  };
  /// Returns the use of each source in the first `steps` steps.
  std::vector<SourceUse> use_after(std::int64_t steps) const;

  const SampleOrderOptions& options() const { return options_; }

 private:
  struct Source {
    std::int64_t first;  // its first row
    EpochOrder order;
  };

  SampleOrderOptions options_;
  SourceTurns turns_;
  std::vector<Source> sources_;
};

}  // namespace zero
