#pragma once
// GgufLayout: places and forms of a model's tensors in a GGUF file, from the family's names and llama.cpp's names of
// the parts.
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
  bool rotated = false;     // rows of each head are in llama.cpp's order there (neighbours_from_halves)
  bool transposed = false;  // [out, in] there, [in, out] here
  bool plus_one = false;    // 1 more there: a norm that is stored here as its distance from 1
};

class GgufLayout {
 public:
  explicit GgufLayout(const ModelConfig& config);

  /// The place of a tensor of the model, by Hugging Face's name. An adapter's tensors have the place of their weight.
  /// Throws InternalError for a tensor outside of the family.
  GgufPlace place(const std::string& tensor) const;

 private:
  struct Module {
    std::string name;
    bool rotated = false, transposed = false;
  };
  std::string layers_;  // "model.layers."
  bool plus_one_;
  std::map<std::string, Module> outer_, inner_;  // by the family's names; those of a block without "LAYERS.N."
};

/// The shape of a tensor of the model in the file, rows first.
std::vector<std::int64_t> shape_in_file(const TensorSpec& tensor, const GgufPlace& place);

/// Reorders rows of a query or key projection [heads * head_dim, columns] for llama.cpp. It rotates neighbours (2i, 2i
/// + 1), while Hugging Face's layout rotates halves (i, i + head_dim / 2). Takes any number of whole heads.
at::Tensor neighbours_from_halves(const at::Tensor& rows, std::int64_t head_dim);

/// Converts values of a tensor, [rows, columns], to the file's form. `values` are whole heads if the form reorders
/// rows, and the whole tensor if it is transposed. A vector is one row.
at::Tensor in_file_form(const at::Tensor& values, const GgufPlace& place, std::int64_t head_dim);

}  // namespace zero
