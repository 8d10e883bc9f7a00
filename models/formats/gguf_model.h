#pragma once
// A Llama model as one GGUF file that llama.cpp loads, by the rules of its convert_hf_to_gguf.py.
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/formats/ggml_type.h"
#include "models/formats/tokenizer_files.h"
#include "models/model.h"
#include "models/weight_source.h"

namespace zero {

struct GgufOptions {
  GgmlType type = GgmlType::f16;   // of matrices; vectors are always F32, and what blocks do not divide F16
  TokenizerSource tokenizer = {};  // empty: a file without tokenizer
  std::string name = {};           // general.name
};

/// llama.cpp's name of a tensor ("model.layers.3.self_attn.q_proj.weight" is "blk.3.attn_q.weight").
std::string gguf_name(const std::string& name);

/// Whether a tensor's rows are rotated: those of query and key projections.
bool is_rotated(const std::string& name);

/// Rows of a query or key projection [heads * head_dim, columns] in llama.cpp's order: it rotates neighbours (2i, 2i +
/// 1) where Hugging Face's layout rotates halves (i, i + head_dim / 2). Any number of whole heads.
at::Tensor neighbours_from_halves(const at::Tensor& rows, std::int64_t head_dim);

/// What the rotary frequencies are divided by under rope_type "llama3", one per pair of a head; empty without scaling.
std::vector<float> rope_factors(const ModelConfig& config);

/// Writes the model's weights, checked before the file is made. Holds chunks of tensors only. InputError where
/// Tokenizer::load, the weight source or a value refuses; then there is no file.
void write_gguf(const std::string& path, const Model& model, WeightSource& weights, const GgufOptions& options);

}  // namespace zero
