#pragma once
// The element types of the safetensors format, and which of them LibTorch has too.
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

namespace zero {

struct SafetensorsType {
  const char* name;
  int bits;
  std::optional<at::ScalarType> type;
};

/// Null for a name that the format does not know.
const SafetensorsType* find_safetensors_type(const std::string& name);
/// The name of a LibTorch type; throws InternalError for one that the format does not know.
const char* safetensors_name(at::ScalarType type);

}  // namespace zero
