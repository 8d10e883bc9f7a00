#pragma once
// The result of a run: model/ or adapter/ in its output directory.
#include <optional>
#include <string>

#include "zero/config/config.h"
#include "zero/config/run_model.h"
#include "zero/core/engine.h"
#include "zero/train/checkpoints.h"

namespace zero {

/// Writes the model or the adapter to `folder`. Returns the reason if that fails, on all ranks. Collective.
std::optional<std::string> write_result(Engine& engine, const RunModel& run, const Config& config,
                                        const std::string& folder);

/// Writes the result and returns its folder. If that fails on rank 0, the trained states are saved in a checkpoint
/// wherever there is space. The Error then names the reason, the place of the states, and how to make the result from
/// them. Collective.
std::string save_result(Engine& engine, const RunModel& run, const Config& config, Checkpoints& checkpoints,
                        const RunPosition& position);

/// Call it before the run begins. Throws InputError if the base model's tokenizer files, its generation settings or the
/// named chat template could not be written at the end.
void check_result(const Config& config, const ModelConfig& model);

}  // namespace zero
