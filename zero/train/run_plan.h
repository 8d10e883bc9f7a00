#pragma once
// RunPlan: the checked configuration of a run, and all that follows from it without looking at data.
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

  /// True for an estimate (--dry-run) of a model of which only config.json exists.
  bool lacks_weights(const TrainArguments& arguments) const;
};

/// Makes the plan of a run on `ranks` ranks. Throws InputError with all mistakes of the user that show without the
/// model's weights and the data.
RunPlan make_plan(const TrainArguments& arguments, int ranks);

/// Opens the model of the plan, and the plan's tokenizer. Throws InputError for mistakes about the weights, then about
/// the adapter, then about the tokenizer. `rank`: whose slices of matrices the model holds, on a tensor axis.
RunModel open_model(RunPlan& plan, const TrainArguments& arguments, int rank);

/// The files that the run reads and must not remove. A resumed run has its own config.toml in memory.
std::vector<ReadPath> reads_of(const RunPlan& plan, const TrainArguments& arguments);

/// The options of the command line that change the run, without those of the configuration.
std::vector<std::string> words_of(const TrainArguments& arguments);

}  // namespace zero
