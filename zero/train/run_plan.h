#pragma once
// RunPlan: the checked configuration of a run and what follows from it without looking at data.
#include <optional>
#include <string>
#include <vector>

#include "models/model_config.h"
#include "models/text/tokenizer.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/config/run_model.h"
#include "zero/output/output_dir.h"
#include "zero/train/train_arguments.h"

namespace zero {

struct RunPlan {
  Config config;
  BatchArithmetic batch;
  ModelConfig model;
  std::optional<Tokenizer> tokenizer;
  c10::Device device = at::kCPU;
  FormerRun former = FormerRun::refused;

  /// True if this is an estimate for a model that is there by its config.json alone.
  bool lacks_weights(const TrainArguments& arguments) const;
};

/// The plan of a run on so many ranks. InputError names all mistakes of the user that show without the model's weights and
/// the data.
RunPlan make_plan(const TrainArguments& arguments, int ranks);

/// The model of the plan, and the plan's tokenizer. InputError where the user has got something wrong about the weights,
/// then about the adapter, then about the tokenizer.
RunModel open_model(RunPlan& plan, const TrainArguments& arguments, int rank);

/// The files that must not be lost to the run. The file that a run wrote of its own configuration is in memory when that
/// run is resumed.
std::vector<ReadPath> reads_of(const RunPlan& plan, const TrainArguments& arguments);

/// The options of the command line that change the run, beside the configuration.
std::vector<std::string> words_of(const TrainArguments& arguments);

}  // namespace zero
