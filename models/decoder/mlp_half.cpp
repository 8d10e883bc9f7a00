#include "models/decoder/mlp_half.h"

namespace zero {
namespace {

ProjectionModules input_modules(const ModelConfig& c, const DecoderNames& names) {
  const std::int64_t inner = c.intermediate_size;
  return {names.mlp_input, c.gated ? std::vector{inner, inner} : std::vector{inner}, c.hidden_size, c.mlp_bias};
}

}  // namespace

MlpHalf::MlpHalf(Unit& unit, const ModelConfig& c, const DecoderNames& names, SlicePlace place)
    : activation_{c.activation, c.gated},
      input_(unit, names.before_mlp, input_modules(c, names), c, names, place),
      output_(unit, {{names.mlp_output}, {c.hidden_size}, c.intermediate_size, c.mlp_bias}, names.after_mlp, c, names,
              place) {}

TokenPart MlpHalf::forward(const TokenPart& x, const ForwardContext& context) const {
  const HalfInput::Result inner = input_.apply(x, context);
  return output_.add_activated(inner.y, activation_, inner.x, context);
}

std::vector<int> MlpHalf::parameters() const {
  std::vector<int> used;
  input_.list(used);
  output_.list(used);
  return used;
}

}  // namespace zero
