#pragma once
// Converts a configuration to the options of each room (a source folder). All are pure functions.
#include "models/formats/hf_directory.h"
#include "models/model_config.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/core/engine.h"
#include "zero/optim/schedule.h"

namespace zero {

/// Returns the model of [model]: a preset with changed fields, or the config.json of a directory.
ModelConfig model_config_of(const Config& config);

/// Converts "fp32", "bf16" or "fp16" to a type and back. Other types are called "fp32".
at::ScalarType type_of_precision(const std::string& precision);
std::string precision_name(at::ScalarType type);
Precision precision_of(const Config& config, const BatchArithmetic& batch);
/// Options for a run on CPUs.
EngineOptions engine_options_of(const Config& config, const BatchArithmetic& batch);
/// Returns true if a GPU's matrix products accumulate gradients (EngineOptions::fuse_accumulation). Returns false for
/// reproducible runs, in which all stages must give the same results.
bool fuses_accumulation_on_gpus(const Config& config);
/// Returns the location of a run's tokenizer and the chat template.
TokenizerSource tokenizer_source_of(const Config& config);
/// Returns checkpoint.export_dtype with "auto" resolved.
std::string export_dtype_of(const Config& config);
/// Returns the options for writing model/: the tensors' type, the tokenizer to copy, and the base model that provides
/// the other settings.
HfWriteOptions write_options_of(const Config& config);
/// Returns the base model's name in an adapter: the path as given, or the preset.
std::string base_name_of(const Config& config);
/// Returns true if checkpoints are written from a copy in memory. They must be asynchronous and regular, and no states
/// may be on disk, since that means that memory is short.
bool copies_checkpoints(const Config& config);
ScheduleOptions schedule_of(const Config& config, std::int64_t steps);

}  // namespace zero
