#pragma once
// SafetensorsWriter: one .safetensors file, written front to back in chunks of any size, so that nobody holds it whole.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/files/new_file.h"

namespace zero {

/// A tensor to be written, and the type that it gets in the file.
struct SafetensorsSpec {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;
};

class SafetensorsWriter {
 public:
  /// Makes a temporary file beside `path` and writes the header. The data follow in the order of `specs`.
  SafetensorsWriter(const std::string& path, std::vector<SafetensorsSpec> specs,
                    std::map<std::string, std::string> metadata = {{"format", "pt"}});

  /// The next elements, flattened; they may end in the middle of a tensor or go on into the next. Floating types are
  /// converted to the file's; other types must be the file's.
  void append(const at::Tensor& chunk);
  /// Syncs and gives the file its name. InternalError when elements are missing. Without finish() nothing is left
  /// behind.
  void finish();

  std::int64_t bytes() const { return bytes_; }  // of data that the file will hold

 private:
  void append_converted(const at::Tensor& flat);
  std::vector<SafetensorsSpec> specs_;
  NewFile file_;
  std::size_t tensor_ = 0;    // the one being written
  std::int64_t element_ = 0;  // inside it
  std::int64_t bytes_ = 0;
  at::Tensor staging_;
};

}  // namespace zero
