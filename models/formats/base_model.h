#pragma once
// BaseModel: the model that a run or a program starts from, either a Hugging Face directory or a GGUF file.
#include <c10/core/ScalarType.h>

#include <memory>
#include <string>

#include "models/formats/unused_tensors.h"
#include "models/model_config.h"
#include "models/weight_source.h"

namespace zero {

/// True if the path's ending or the file's first bytes are those of a GGUF file.
bool is_gguf_model(const std::string& path);

/// Reads the model's configuration. For a Hugging Face model, reads only config.json, which `path` may name directly.
/// Throws InputError if the file is missing, broken or of an unknown kind.
ModelConfig config_of_model(const std::string& path);
/// Returns the architecture that [model] preset names: a preset of preset_names(), or that of a config.json, whose path
/// ends with ".json". Its weights are random. Throws InputError for other names, and as config_of_model() does.
ModelConfig architecture_of(const std::string& preset);
/// Throws InputError if weights are missing or broken.
std::shared_ptr<WeightSource> weights_of_model(const std::string& path, UnusedTensors unused = UnusedTensors::refuse);

/// True if the path has weights: a GGUF file, or model.safetensors or its index in a folder.
bool holds_weights(const std::string& path);

/// The type of the stored weights: fp32, bf16 or fp16. It is the embedding's type or, without weights, the type in
/// config.json (dtype, torch_dtype). Quantized GGUF files count as bf16. Any other type, or none, counts as fp32.
at::ScalarType stored_type_of_model(const std::string& path);

}  // namespace zero
