#pragma once
// MlpHalf: a norm, the gate and up products, the activation, the down product, and a norm.
#include "models/decoder/decoder_half.h"
#include "models/decoder/half_ends.h"

namespace zero {

class MlpHalf final : public DecoderHalf {
 public:
  /// Declares this object's parameters in the unit, which must outlive the object. `place` is the rank whose slices
  /// this object holds.
  MlpHalf(Unit& unit, const ModelConfig& config, const DecoderNames& names, SlicePlace place);

  TokenPart forward(const TokenPart& x, const ForwardContext& context) const override;
  std::vector<int> parameters() const override;
  bool is_tokenwise() const override { return true; }

 private:
  ActivationKind activation_;
  // These members are declared in the order of the unit's parameters.
  HalfInput input_;
  HalfOutput output_;
};

}  // namespace zero
