#pragma once
// GgufLayout: the name and form of each of a model's tensors in a GGUF file. It follows from the family's names and
// from llama.cpp's names for the same parts.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/families/family.h"
#include "models/model_config.h"
#include "models/tensor_spec.h"

namespace zero {

struct GgufPlace {
  std::string name;         // "blk.3.attn_q.weight"
  bool rotated = false;     // in the file, rows of each head are in llama.cpp's order (neighbours_from_halves)
  bool transposed = false;  // [out, in] in the file, [in, out] in the model
  bool plus_one = false;    // the file stores 1 more: a norm that the model stores as its distance from 1
};

class GgufLayout {
 public:
  explicit GgufLayout(const ModelConfig& config);

  /// The place of a tensor, given by its Hugging Face name. An adapter's tensors have the place of their weight. Throws
  /// InternalError for a tensor that the family does not have.
  GgufPlace place(const std::string& tensor) const;

 private:
  struct Module {
    std::string name;
    bool rotated = false, transposed = false;
  };
  std::string layers_;  // "model.layers."
  bool plus_one_;
  std::map<std::string, Module> outer_, inner_;  // by the family's names; in a block, without "LAYERS.N."
};

/// The shape that a tensor of the model has in the file, rows first.
std::vector<std::int64_t> shape_in_file(const TensorSpec& tensor, const GgufPlace& place);

/// Reorders rows of a query or key projection [heads * head_dim, columns] for llama.cpp, whose rope rotates neighbours
/// (2i, 2i + 1). Hugging Face's layout rotates halves (i, i + head_dim / 2). Accepts any number of whole heads.
at::Tensor neighbours_from_halves(const at::Tensor& rows, std::int64_t head_dim);

/// Converts values of a tensor, [rows, columns], to the file's form. If that form reorders rows, `values` must be whole
/// heads. If that form transposes, `values` must be the whole tensor. A vector is one row.
at::Tensor in_file_form(const at::Tensor& values, const GgufPlace& place, std::int64_t head_dim);

}  // namespace zero
