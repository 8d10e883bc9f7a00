#pragma once
// From [data] to the loaders that a run takes its batches from.
#include <memory>
#include <optional>

#include "base/core_share.h"
#include "comm/communicator.h"
#include "models/model_config.h"
#include "models/text/tokenizer.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/data/rows/loader.h"

namespace zero {

/// What a run learns from and is checked against.
struct TrainingData {
  std::unique_ptr<Loader> training;
  std::unique_ptr<ValidationLoader> validation;  // null when there is none
};

/// The tokenizer of data.tokenizer, or of the model directory; none where only .bin files are read and none is there.
/// InputError when a text needs one, or when it is to encode one and has more ids than the model.
std::optional<Tokenizer> tokenizer_of(const Config& config, const ModelConfig& model);

/// Opens and checks every file; texts and conversations are tokenised into job.output_dir/token_cache, by rank 0 on
/// `cores` (none: its own). Batches for a GPU have few lengths. Collective.
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

/// The steps of the run: training.steps, or what training.epochs amount to. InputError where the warm-up is longer.
std::int64_t steps_of(const Config& config, const TrainingData& data);

}  // namespace zero
