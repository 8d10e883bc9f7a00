#pragma once
// SafetensorsFile: the tensors of one .safetensors file. It reads any range of any tensor on request. It checks
// everything that the reference does (Metadata::validate of the safetensors crate). To cap the cost of a hostile
// header, it limits the number of tensors, their rank and the length of names.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files/file.h"

namespace zero {

/// One tensor of the header. Tensors of types that LibTorch lacks are listed but cannot be read.
struct StoredTensor {
  std::string name;
  std::string dtype;  // "F32", "BF16", ...
  std::optional<at::ScalarType> type;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // bytes in the data section
  std::int64_t end = 0;

  std::int64_t numel() const;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // by offset
  std::map<std::string, std::string> metadata;
};

inline constexpr std::int64_t safetensors_max_header = 100'000'000;  // bytes, as in the reference
inline constexpr std::int64_t safetensors_max_tensors = 1'000'000;
inline constexpr std::int64_t safetensors_max_rank = 8;
inline constexpr std::int64_t safetensors_max_name = 1024;  // bytes

/// Parses and validates a header, given without its length field. `data_bytes` bytes follow it in the file. Throws
/// InputError with `path`, the tensor and what is wrong.
SafetensorsHeader parse_safetensors_header(std::string_view header, std::int64_t data_bytes, const std::string& path);

class SafetensorsFile {
 public:
  /// Reads and validates the header. Throws InputError with the file, the tensor and what is wrong.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// Returns null if no tensor has this name.
  const StoredTensor* find(const std::string& name) const;

  /// Reads elements [begin, begin + count) of the flattened tensor into `out`, a contiguous CPU tensor of `count`
  /// elements. Floating types are converted to the type of `out`. Other types must equal it. Throws InputError if the
  /// file ends too soon.
  void read(const std::string& name, std::int64_t begin, std::int64_t count, const at::Tensor& out) const;
  /// Reads the whole tensor in its own type and shape.
  at::Tensor read(const std::string& name) const;

 private:
  File file_;
  SafetensorsHeader header_;
  std::int64_t data_begin_ = 0;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace zero
