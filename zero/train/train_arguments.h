#pragma once
// TrainArguments: the command line of a run.
#include <string>
#include <vector>

#include "zero/estimate/target_machine.h"
#include "zero/train/run_data.h"
#include "zero/train/training.h"

namespace zero {

struct TrainArguments {
  std::string config;                  // path
  std::vector<std::string> overrides;  // "section.key=value"
  std::string version;                 // the program's version, for the run's config.toml
  bool overwrite = false;
  bool resume = false;
  std::vector<std::string> accepted_changes;  // settings that may differ from the checkpoint's
  bool checkpoint_first = false;              // save one before the first step, if there are regular checkpoints
  bool dry_run = false;
  bool print_config = false;  // with dry_run: the resolved configuration too
  TargetMachine target;       // with dry_run: the machine to estimate for, if not this one
  PreviewOptions preview;
  std::vector<MakeObserver> observers;  // observers of the program itself
};

}  // namespace zero
