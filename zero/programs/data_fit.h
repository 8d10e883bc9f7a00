#pragma once
// DataFit: fits a new configuration to its data.
#include <cstdint>
#include <optional>

#include "zero/train/run_length.h"

namespace zero {

struct FitOptions {
  std::int64_t unit = 1;  // of rows in a step: a micro-batch of every rank
  // The user named none: it is halved while the data have no row of that length, and ends with the longest row.
  bool fits_seq_len = false;
  bool fits_batch = false;  // the user named none: it is at most a tenth of the rows, and at least one unit
};

/// Counts the rows of data.train, and fits training.seq_len and training.global_batch_size, which has a value. Returns
/// nothing for data that are not countable. Throws InputError for data that the run would refuse.
std::optional<RunLength> fit_to_data(Config& config, const ModelConfig& model,
                                     const std::optional<Tokenizer>& tokenizer, const FitOptions& options);

}  // namespace zero
