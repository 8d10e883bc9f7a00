#pragma once
// The result of a run: model/ or adapter/ in its output directory.
#include <string>

#include "zero/config/config.h"
#include "zero/config/run_model.h"
#include "zero/core/engine.h"
#include "zero/train/checkpoints.h"

namespace zero {

/// Writes it and returns its folder. If that fails on rank 0, the trained states go to a checkpoint wherever there is
/// room. The Error then has the reason, the place of the states and how to make the result of them. Collective.
std::string save_result(Engine& engine, const RunModel& run, const Config& config, Checkpoints& checkpoints,
                        const RunPosition& position);

/// Call it before the run begins. Throws InputError if small files of the result could not be made at the end: those of
/// the base's tokenizer, its generation settings, or the named chat template.
void check_result(const Config& config, const ModelConfig& model);

}  // namespace zero
