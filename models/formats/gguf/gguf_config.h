#pragma once
// The configuration of a model that a GGUF file holds, by what the families say of llama.cpp's architectures.
#include <string>

#include "models/families/family.h"
#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// The family of the file's general.architecture; of several with one architecture the first. InputError that lists those
/// known for another one, and for a file that holds no model.
const Family& family_of(const GgufFile& file);

/// The config.json of the file's model, as JSON text for parse_model_config(). InputError for what is missing or asks
/// for what is not done here: every key of the architecture must be known.
std::string config_json_of(const GgufFile& file);

}  // namespace zero
