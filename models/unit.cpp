#include "models/unit.h"

#include "base/error.h"

namespace zero {

std::vector<std::int64_t> Parameter::shape() const {
  ZERO_CHECK(!parts.empty() && !parts[0].shape.empty(), "a parameter needs a part with at least one dimension");
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
