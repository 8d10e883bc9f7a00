#pragma once
// RunLength: the rows, steps and epochs of a run, before it starts.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/model_config.h"
#include "models/text/tokenizer.h"
#include "zero/config/config.h"
#include "zero/train/run_data.h"

namespace zero {

struct RunLength {
  TrainingRows counts;  // to train on
  std::int64_t steps = 0;
  double epochs = 0;

  /// The length of a run with these rows. `config` has a global batch size.
  static RunLength of(const Config& config, const TrainingRows& counts);
  /// "1079 rows of 1024 tokens: 77 steps of 32 rows, 2.3 epochs". Rows of other lengths are told their average.
  std::string describe(const Config& config) const;
};

/// True if the files are there, and can be counted within seconds: texts of at most 16 MiB together, ids of at most
/// 2 GiB.
bool are_countable(const std::vector<std::string>& files);

/// Counts the rows of data.train as the run does. Texts are tokenised into a folder that does not stay. Throws
/// InputError for data that the run would refuse.
TrainingRows count_rows(const Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer);

/// The length of a run if its rows can be counted within seconds; none if they cannot. Throws InputError for data that
/// the run would refuse, if they are counted, and for a warm-up that is longer than the run.
std::optional<RunLength> counted_length(const Config& config, const ModelConfig& model,
                                        const std::optional<Tokenizer>& tokenizer);

}  // namespace zero
