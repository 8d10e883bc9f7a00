#pragma once
// Reads the configuration of the model in a GGUF file, by the families' facts about llama.cpp's architectures.
#include <string>

#include "models/families/family.h"
#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// The family of the file's general.architecture; the first of several with one architecture. Throws InputError that
/// lists the known ones, and for a file without a model.
const Family& family_of(const GgufFile& file);

/// The config.json of the file's model, as JSON text for parse_model_config(). Throws InputError for missing or
/// unsupported values. Every key of the architecture must be known.
std::string config_json_of(const GgufFile& file);

}  // namespace zero
