#pragma once
// RunPlan: the checked configuration of a run, and everything that follows from it without reading data.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/model_config.h"
#include "models/text/tokenizer.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/config/run_model.h"
#include "zero/output/output_dir.h"
#include "zero/train/sample_prompts.h"
#include "zero/train/train_arguments.h"

namespace zero {

struct RunPlan {
  Config config;
  BatchArithmetic batch;
  ModelConfig model;
  std::optional<Tokenizer> tokenizer;
  std::optional<SamplePrompts> samples;
  c10::Device device = at::kCPU;
  FormerRun former = FormerRun::refused;

  /// True for an estimate (--dry-run) of a model that has only a config.json.
  bool lacks_weights(const TrainArguments& arguments) const;
};

/// Chooses this rank's device. Throws InputError if there is none.
using ChooseDevice = std::function<c10::Device(const Config& config)>;

/// Makes the plan of a run on `ranks` ranks. Throws InputError that lists all user errors that can be found without the
/// model's weights and the data. If the layout is illegal, the message names the nearest legal ones.
RunPlan make_plan(const TrainArguments& arguments, int ranks, const ChooseDevice& choose);

/// Opens the model of the plan, and the plan's tokenizer. Throws InputError for mistakes about the weights, then about
/// the adapter, then about the tokenizer. `rank`: with a tensor axis, the model holds this rank's slices of matrices.
RunModel open_model(RunPlan& plan, const TrainArguments& arguments, int rank);

/// Returns the files that the run reads and must not remove. A resumed run's own config.toml is not one of them, since
/// it is in memory.
std::vector<ReadPath> reads_of(const RunPlan& plan, const TrainArguments& arguments);

/// Returns the command-line options that change the run, other than those of the configuration.
std::vector<std::string> words_of(const TrainArguments& arguments);

}  // namespace zero
