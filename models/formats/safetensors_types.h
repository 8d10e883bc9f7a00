#pragma once
// The element types of the safetensors format, and their LibTorch types if they have one.
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

namespace zero {

struct SafetensorsType {
  const char* name;
  int bits;
  std::optional<at::ScalarType> type;
};

/// Returns null for an unknown name.
const SafetensorsType* find_safetensors_type(const std::string& name);
/// The name of a LibTorch type. Throws InternalError for a type that the format lacks.
const char* safetensors_name(at::ScalarType type);

}  // namespace zero
