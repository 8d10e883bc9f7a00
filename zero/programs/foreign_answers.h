#pragma once
// ForeignAnswers: what a configuration of another tool answers for a new run, and what the command line changes.
#include <ostream>

#include "zero/programs/data_fit.h"
#include "zero/programs/foreign_config.h"
#include "zero/programs/new_run.h"

namespace zero {

/// Fills answers that the command line leaves open: model, data, output directory. An answer that cannot be used is
/// told on `out`, and stays open.
void take_answers(ForeignConfig& foreign, NewRun& run, std::ostream& out);

/// Drops settings that the command line or the data replace, tells on `out` what is taken and what is not, and puts the
/// file's settings before those of the command line. The data are known.
void take_settings(ForeignConfig& foreign, NewRun& run, const MachineRequest& machine, std::ostream& out);

/// Sets the shares of the run's steps, and shortens a warm-up of the file that is longer than the run. `length`: absent
/// if the data were not counted, and then the file has no shares.
void take_length(const ForeignConfig& foreign, const std::optional<RunLength>& length, Config& config,
                 std::ostream& out);

/// Tells the values of the keys that the file left to a Trainer.
void tell_open_keys(const ForeignConfig& foreign, const Config& config, std::ostream& out);

}  // namespace zero
