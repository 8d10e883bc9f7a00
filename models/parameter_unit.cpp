#include "models/parameter_unit.h"

#include "base/error.h"

namespace zero {

std::vector<std::int64_t> Parameter::shape() const {
  ZERO_CHECK(parts.size() == 1 || (!parts.empty() && !parts[0].shape.empty()), "parts stand along a dimension");
  std::vector<std::int64_t> whole = parts[0].shape;
  for (std::size_t i = 1; i < parts.size(); ++i) whole[0] += parts[i].shape[0];
  return whole;
}

std::int64_t Parameter::numel() const {
  std::int64_t n = 0;
  for (const TensorSpec& part : parts) n += part.numel();
  return n;
}

}  // namespace zero
