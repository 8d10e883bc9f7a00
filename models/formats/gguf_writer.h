#pragma once
// GgufWriter: one GGUF file of version 3, written front to back in chunks, so that nobody holds it whole.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/new_file.h"
#include "base/numbers/ggml_type.h"
#include "models/formats/gguf_metadata.h"

namespace zero {

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // rows first, as elsewhere here; the file has the order reversed
  GgmlType type = GgmlType::f32;
};

class GgufWriter {
 public:
  /// Makes a temporary file beside `path` and writes everything that stands before the data.
  GgufWriter(const std::string& path, const GgufMetadata& metadata, std::vector<GgufTensor> tensors);

  /// The next values, fp32, of the tensor whose turn it is; of whole blocks. A chunk ends where a tensor ends
  /// or before.
  void append(const at::Tensor& values);
  /// Syncs and gives the file its name. InternalError when values are missing. Without finish() nothing is left behind.
  void finish();

 private:
  void pad();
  std::vector<GgufTensor> tensors_;
  NewFile file_;
  std::size_t tensor_ = 0;    // the one being written
  std::int64_t element_ = 0;  // inside it
  std::int64_t written_ = 0;  // bytes of the file
};

}  // namespace zero
