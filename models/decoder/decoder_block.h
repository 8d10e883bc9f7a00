#pragma once
// DecoderBlock: attention and an MLP, each with its family's norms, added to the residual stream one after the other.
#include <memory>
#include <vector>

#include "models/decoder/decoder_half.h"
#include "models/decoder/decoder_names.h"
#include "models/model_config.h"
#include "models/ops/rotary.h"

namespace zero {

class DecoderBlock : public Unit {
 public:
  /// `rotary` is the table for the layer's rope kind, shared by all blocks of that kind. `place` is the rank whose
  /// slices the block holds.
  DecoderBlock(const ModelConfig& config, const DecoderNames& names, std::int64_t layer, std::shared_ptr<Rotary> rotary,
               SlicePlace place = {});

  void drop_tables() override;
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) override;

 private:
  TokenPart run(const DecoderHalf& half, const TokenPart& x, const ForwardContext& context) const;
  TokenPart again_in_backward(const DecoderHalf& half, const TokenPart& x, const ForwardContext& context) const;
  TokenPart by_tiles(const DecoderHalf& half, const TokenPart& x, const ForwardContext& context) const;
  std::vector<at::Tensor> trained_by(const DecoderHalf& half) const;

  std::vector<std::unique_ptr<DecoderHalf>> halves_;
};

}  // namespace zero
