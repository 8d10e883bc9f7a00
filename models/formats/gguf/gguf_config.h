#pragma once
// The configuration of a model that a GGUF file holds, by the table of architectures that are known.
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// One of llama.cpp's architectures. Files of others are refused by name.
struct GgufArchitecture {
  std::string name;                 // general.architecture
  std::string model_type;           // of config.json
  bool rotates_neighbours = false;  // rows of q and k are in llama.cpp's order (neighbours_from_halves)
};

/// Of the file. InputError that lists those known for another one, and for a file that holds no model.
const GgufArchitecture& architecture_of(const GgufFile& file);

/// The config.json of the file's model, as JSON text for parse_model_config(). InputError for what is missing or asks
/// for what is not done here: every key of the architecture must be known.
std::string config_json_of(const GgufFile& file);

}  // namespace zero
