#pragma once
// GgufWriter: one GGUF file of version 3, written front to back in chunks, so the whole file is never in memory.
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
  std::vector<std::int64_t> shape;  // rows first, as everywhere in this project; the file reverses the order
  GgmlType type = GgmlType::f32;
};

class GgufWriter {
 public:
  /// Creates a temporary file in the folder of `path` and writes everything before the data.
  GgufWriter(const std::string& path, const GgufMetadata& metadata, std::vector<GgufTensor> tensors);

  /// Appends fp32 values, in whole blocks, to the current tensor. A chunk must not cross the end of a tensor.
  void append(const at::Tensor& values);
  /// Syncs the file and renames it to its final name. Throws InternalError if values are missing. If finish() is not
  /// called, no file is left behind.
  void finish();

 private:
  void pad();
  std::vector<GgufTensor> tensors_;
  NewFile file_;
  std::size_t tensor_ = 0;    // the tensor being written
  std::int64_t element_ = 0;  // inside it
  std::int64_t written_ = 0;  // bytes of the file
};

}  // namespace zero
