#pragma once
// BaseModel: the model that a run or a program begins with: a Hugging Face directory, or a GGUF file.
#include <c10/core/ScalarType.h>

#include <memory>
#include <string>

#include "models/formats/unused_tensors.h"
#include "models/model_config.h"
#include "models/weight_source.h"

namespace zero {

/// True if the path counts as a GGUF file: by its ending, or by its first bytes.
bool is_gguf_model(const std::string& path);

/// The model's sizes. For a Hugging Face model it reads only config.json, and the path may name that file. Throws
/// InputError if it is missing, broken or of an unknown kind.
ModelConfig config_of_model(const std::string& path);
/// Throws InputError if weights are missing or broken.
std::shared_ptr<WeightSource> weights_of_model(const std::string& path, UnusedTensors unused = UnusedTensors::refuse);

/// True if the path has weights: a GGUF file, or model.safetensors or its index in a folder.
bool holds_weights(const std::string& path);

/// The type of the stored weights: fp32, bf16 or fp16. It is that of the embedding; without weights that of config.json
/// (dtype, torch_dtype). Other types, and files that name none, count as fp32, and quantised GGUF files as bf16.
at::ScalarType stored_type_of_model(const std::string& path);

}  // namespace zero
