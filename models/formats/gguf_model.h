#pragma once
// Writes a model as one GGUF file for llama.cpp, by the rules of its convert_hf_to_gguf.py.
#include <string>

#include "models/formats/ggml_type.h"
#include "models/formats/tokenizer_files.h"
#include "models/model.h"
#include "models/weight_source.h"

namespace zero {

struct GgufOptions {
  GgmlType type = GgmlType::f16;   // of matrices; vectors are F32, and matrices that blocks do not divide F16
  TokenizerSource tokenizer = {};  // empty: a file without tokenizer
  std::string name = {};           // general.name
};

/// Writes the model's weights, which are checked before the file is made. Holds only chunks of tensors, and whole
/// matrices if the family stores them [in, out]. Throws InputError if check_gguf(), Tokenizer::load, the weight source
/// or a value refuses. Then there is no file.
void write_gguf(const std::string& path, const Model& model, WeightSource& weights, const GgufOptions& options);

}  // namespace zero
