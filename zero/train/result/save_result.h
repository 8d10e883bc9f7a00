#pragma once
// What a run leaves at its end: model/ or adapter/ in its output directory.
#include <string>

#include "zero/config/config.h"
#include "zero/config/run_model.h"
#include "zero/core/engine.h"
#include "zero/train/checkpoints.h"

namespace zero {

/// Writes it and returns its folder. Where that fails on rank 0, the trained states go to a checkpoint wherever there
/// is room, and the Error says why, where they are and how they become the result. Collective.
std::string save_result(Engine& engine, const RunModel& run, const Config& config, Checkpoints& checkpoints,
                        const RunPosition& position);

/// InputError, before the run begins, for what the small files of its result could not be made of at its end: tokenizer
/// and generation settings of the base, the name of the chat template.
void check_result(const Config& config, const ModelConfig& model);

}  // namespace zero
