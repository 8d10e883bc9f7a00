#pragma once
// Family: a description of one kind of decoder: which fields its config.json has, and what its parts are called. A family
// is a file of this folder with one function that gives its description; families.cpp declares and lists these functions,
// so that a new one compiles two sources.
#include <string>

#include "models/decoder/decoder_names.h"
#include "models/families/gguf_architecture.h"
#include "models/model_config.h"

namespace zero {

class ConfigFields;

struct Family {
  std::string model_type;    // of config.json
  std::string architecture;  // the class of transformers
  /// Reads a config.json into the numbers and kinds of a decoder. InputError for what is not done. Fields that it does
  /// not ask for are looked at by ConfigFields::refuse_the_rest().
  void (*read)(ConfigFields& fields, ModelConfig& config);
  DecoderNames names = {};
  GgufArchitecture gguf = {};  // its form in llama.cpp; without a name: not known here
};

/// The family of the presets.
const Family& llama_family();

}  // namespace zero
