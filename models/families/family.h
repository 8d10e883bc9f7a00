#pragma once
// Family: a description of one kind of decoder: the fields of its config.json and the names of its parts. Each family
// is a file in this folder with one function that returns its description. families.cpp declares and lists these
// functions, so a new family recompiles only two sources.
#include <string>

#include "models/decoder/decoder_names.h"
#include "models/families/gguf_architecture.h"
#include "models/model_config.h"

namespace zero {

class ConfigFields;

struct Family {
  std::string model_type;    // of config.json
  std::string architecture;  // the class of transformers
  /// Reads a config.json into a ModelConfig. Throws InputError for unsupported values. ConfigFields::refuse_the_rest()
  /// checks the fields that this function does not read.
  void (*read)(ConfigFields& fields, ModelConfig& config);
  DecoderNames names = {};
  GgufArchitecture gguf = {};  // llama.cpp's form of the family; unknown here if its name is empty
};

/// The family of the presets.
const Family& llama_family();

}  // namespace zero
