#pragma once
// Reads the configuration of the model in a GGUF file, using each family's GgufArchitecture.
#include <string>

#include "models/families/family.h"
#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// The family of the file's general.architecture. If several families share it, returns the first. Throws InputError
/// for a file without a model, and for an unknown architecture; the message then lists the known ones.
const Family& family_of(const GgufFile& file);

/// The config.json of the file's model, as JSON text for parse_model_config(). Throws InputError for missing or
/// unsupported values. Every key of the architecture must be known.
std::string config_json_of(const GgufFile& file);

}  // namespace zero
