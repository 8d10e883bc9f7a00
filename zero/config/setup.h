#pragma once
// Converts a configuration to the options of each room. Pure functions.
#include "models/formats/hf_directory.h"
#include "models/model_config.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/core/engine.h"
#include "zero/optim/schedule.h"

namespace zero {

/// The model of [model]: a preset with its changed fields, or the config.json of a directory.
ModelConfig model_config_of(const Config& config);

/// Converts "fp32", "bf16" or "fp16" to a type and back. Other types are called "fp32".
at::ScalarType type_of_precision(const std::string& precision);
std::string precision_name(at::ScalarType type);
Precision precision_of(const Config& config, const BatchArithmetic& batch);
/// Options for a run on CPUs.
EngineOptions engine_options_of(const Config& config, const BatchArithmetic& batch);
/// True if a GPU's matrix products accumulate gradients (EngineOptions::fuse_accumulation). False for reproducible
/// runs, in which stages must agree.
bool fuses_accumulation_on_gpus(const Config& config);
/// The location of a run's tokenizer, and the template for its chats.
TokenizerSource tokenizer_source_of(const Config& config);
/// checkpoint.export_dtype with "auto" resolved.
std::string export_dtype_of(const Config& config);
/// Options of model/: the tensors' type, the tokenizer to copy, and the base that provides the other settings.
HfWriteOptions write_options_of(const Config& config);
/// An adapter's name for its base: the path as given, or the preset.
std::string base_name_of(const Config& config);
/// True if checkpoints are written from a copy in memory: they are asynchronous and regular, and no states are on disk.
/// States on disk mean that memory is short.
bool copies_checkpoints(const Config& config);
ScheduleOptions schedule_of(const Config& config, std::int64_t steps);

}  // namespace zero
