#include "models/unit.h"

#include "base/error.h"

namespace zero {

std::vector<std::int64_t> Parameter::shape() const {
  ZERO_CHECK(!pieces.empty() && !pieces[0].shape.empty(), "a parameter needs a piece with at least one dimension");
  std::vector<std::int64_t> whole = pieces[0].shape;
  for (std::size_t i = 1; i < pieces.size(); ++i) whole[0] += pieces[i].shape[0];
  return whole;
}

std::int64_t Parameter::numel() const {
  std::int64_t n = 0;
  for (const TensorSpec& piece : pieces) n += piece.numel();
  return n;
}

}  // namespace zero
