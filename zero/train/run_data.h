#pragma once
// The data of a run: from [data] to the loaders of its batches.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core_share.h"
#include "comm/communicator.h"
#include "models/model_config.h"
#include "models/text/tokenizer.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/data/rows/loader.h"
#include "zero/data/rows/reference_rows.h"

namespace zero {

/// Rows that need log-probabilities of a reference model (zero/train/reference.h).
struct ReferencePart {
  std::string name;  // "training", "validation", and the same of mismatched answers
  std::shared_ptr<ReferenceRows> rows;
  bool of_steps = false;  // only rows that the run's steps take need them
  /// Batches of rows without the reference.
  std::function<std::unique_ptr<ValidationLoader>(std::shared_ptr<const RowSource>)> loader_of;
};

/// The training data and the validation data of a run.
struct TrainingData {
  std::unique_ptr<const Loss> loss;  // null: cross-entropy
  std::vector<ReferencePart> references;
  // KTO's mismatched answers of the training and the validation rows; null for other losses.
  std::unique_ptr<Loader> mismatched;
  std::unique_ptr<ValidationLoader> mismatched_validation;
  std::unique_ptr<Loader> training;
  std::unique_ptr<ValidationLoader> validation;  // null: no validation data
};

/// Returns the tokenizer of data.tokenizer or of the model directory. Returns none if only .bin files are read and
/// there is no tokenizer. Throws InputError if texts are read without a tokenizer, or with a tokenizer that has more
/// ids than the model.
std::optional<Tokenizer> tokenizer_of(const Config& config, const ModelConfig& model);

/// The loss of [preference].
std::unique_ptr<const Loss> preference_loss(const PreferenceSection& preference);

/// Opens and checks every file. `config` must outlive the result. Rank 0 tokenises texts and conversations into
/// job.output_dir/token_cache, on `cores` (empty: its own cores). Batches for a GPU have only a few different lengths.
/// Collective.
TrainingData open_training_data(const Config& config, const BatchArithmetic& batch, const ModelConfig& model,
                                const std::optional<Tokenizer>& tokenizer, Communicator& communicator,
                                const CoreSet& cores = {}, at::Device device = at::kCPU);

struct PreviewOptions {
  std::int64_t examples = 0;  // 0: no preview
  bool json = false;          // one object per line instead of a line per token
};

/// Prints the first examples of data.train as training will see them.
void print_preview(const Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer,
                   const PreviewOptions& preview);

/// Throws InputError if training would refuse the first example of a file of data.train. Looks at no texts and ids.
void check_first_example(const Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer);

/// The rows that a run trains on.
struct TrainingRows {
  std::int64_t rows = 0;
  std::int64_t tokens = 0;   // of all rows
  std::int64_t longest = 0;  // tokens of the longest row, with those held out and KTO's mismatched answers
};

/// Counts the rows that the run trains on. Opens and checks files as open_training_data() does. Texts are tokenised
/// into `cache_folder`. Collective.
TrainingRows count_training_rows(const Config& config, const ModelConfig& model,
                                 const std::optional<Tokenizer>& tokenizer, const std::string& cache_folder,
                                 Communicator& communicator);

/// Returns the number of steps: training.steps, or the steps in training.epochs. Throws InputError if the warm-up is
/// longer.
std::int64_t steps_of(const Config& config, const TrainingData& data);

}  // namespace zero
