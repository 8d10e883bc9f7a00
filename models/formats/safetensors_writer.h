#pragma once
// SafetensorsWriter: one .safetensors file, written front to back in chunks of any size, so the whole file is never in
// memory.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/files/new_file.h"

namespace zero {

/// A tensor to be written, and its type in the file.
struct SafetensorsSpec {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;
};

class SafetensorsWriter {
 public:
  /// Creates a temporary file in the folder of `path` and writes the header. The data follow in the order of `specs`.
  SafetensorsWriter(const std::string& path, std::vector<SafetensorsSpec> specs,
                    std::map<std::string, std::string> metadata = {{"format", "pt"}});

  /// Appends elements, flattened. A chunk may end in the middle of a tensor or continue into the next one. Floating
  /// types are converted to the file's type. Other types must equal it.
  void append(const at::Tensor& chunk);
  /// Syncs the file and renames it to its final name. Throws InternalError if elements are missing. If finish() is not
  /// called, no file is left behind.
  void finish();

  std::int64_t bytes() const { return bytes_; }  // of the data that the file will hold

 private:
  void append_converted(const at::Tensor& flat);
  std::vector<SafetensorsSpec> specs_;
  NewFile file_;
  std::size_t tensor_ = 0;    // the tensor being written
  std::int64_t element_ = 0;  // inside it
  std::int64_t bytes_ = 0;
  at::Tensor staging_;
};

}  // namespace zero
