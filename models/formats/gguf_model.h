#pragma once
// Writes a model as one GGUF file for llama.cpp, following its convert_hf_to_gguf.py.
#include <string>

#include "models/formats/ggml_type.h"
#include "models/formats/tokenizer_files.h"
#include "models/model.h"
#include "models/weight_source.h"

namespace zero {

struct GgufOptions {
  GgmlType type = GgmlType::f16;   // of matrices; vectors are F32; matrices that are not whole blocks are F16
  TokenizerSource tokenizer = {};  // if empty, the file has no tokenizer
  std::string name = {};           // general.name
};

/// Checks the model's weights and then writes the file. Holds only chunks of tensors, or whole matrices if the family
/// stores them [in, out]. Throws InputError if check_gguf(), Tokenizer::load or the weight source does, or if a value
/// does not fit. No file is then left behind.
void write_gguf(const std::string& path, const Model& model, WeightSource& weights, const GgufOptions& options);

}  // namespace zero
