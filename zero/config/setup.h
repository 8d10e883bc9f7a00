#pragma once
// From a configuration to the options of each room. Pure functions.
#include "models/formats/hf_directory.h"
#include "models/model_config.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/core/engine.h"
#include "zero/optim/schedule.h"

namespace zero {

/// The model that [model] names: a preset with its fields changed, or the config.json of a directory.
ModelConfig model_config_of(const Config& config);

/// "fp32", "bf16" or "fp16" as a type, and back. Other types are named "fp32".
at::ScalarType type_of_precision(const std::string& precision);
std::string precision_name(at::ScalarType type);
Precision precision_of(const Config& config, const BatchArithmetic& batch);
/// Of a run on CPUs.
EngineOptions engine_options_of(const Config& config, const BatchArithmetic& batch);
/// Whether a GPU's matrix products accumulate gradients (EngineOptions::fuse_accumulation): unless results are to repeat,
/// which stages then agree in.
bool fuses_accumulation_on_gpus(const Config& config);
/// Where the tokenizer of a run's texts and chats lies, and which template writes its chats.
TokenizerSource tokenizer_source_of(const Config& config);
/// checkpoint.export_dtype with "auto" replaced by the type that it stands for.
std::string export_dtype_of(const Config& config);
/// Of model/: the tensors' type, the tokenizer that goes along, and the base whose further settings stay.
HfWriteOptions write_options_of(const Config& config);
/// What an adapter calls its base: the path as given, or the preset.
std::string base_name_of(const Config& config);
/// Whether checkpoints are to be written from a copy in memory, for which there must be room: where they are asynchronous,
/// some are written without being asked for, and no states lie on disk, as they do for want of memory.
bool copies_checkpoints(const Config& config);
ScheduleOptions schedule_of(const Config& config, std::int64_t steps);

}  // namespace zero
