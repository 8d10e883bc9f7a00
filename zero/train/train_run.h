#pragma once
// One run of zero_train, from a configuration to the trained model: the order in which the rooms are entered.
#include <string>
#include <vector>

#include "comm/world/job.h"
#include "zero/estimate/target_machine.h"
#include "zero/prove/step_recorder.h"
#include "zero/train/run_data.h"

namespace zero {

struct TrainArguments {
  std::string config;                  // path
  std::vector<std::string> overrides;  // "section.key=value"
  std::string version;                 // of the program, for the run's config.toml
  bool overwrite = false;
  bool resume = false;
  std::vector<std::string> accepted_changes;  // settings that may differ from the checkpoint's
  bool checkpoint_first = false;              // before the first step, where there are regular ones
  bool dry_run = false;
  bool print_config = false;  // with dry_run: the resolved configuration too
  TargetMachine target;       // with dry_run: where the run would be, if not here
  PreviewOptions preview;
  RecordOptions record;  // a run of a few steps whose tensors are written down (zero_prove)
};

/// Everything the user can have got wrong is found before anything is written or allocated. Returns the exit code.
int train_run(Job& job, const TrainArguments& arguments);

}  // namespace zero
