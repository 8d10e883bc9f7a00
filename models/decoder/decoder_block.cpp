#include "models/decoder/decoder_block.h"

#include <ATen/core/grad_mode.h>

#include "models/decoder/attention_half.h"
#include "models/decoder/mlp_half.h"
#include "models/nn/recompute.h"

namespace zero {

DecoderBlock::DecoderBlock(const ModelConfig& config, const DecoderNames& names, std::int64_t layer,
                           std::shared_ptr<Rotary> rotary, SlicePlace place)
    : Unit(names.layers + "." + std::to_string(layer)) {
  halves_.push_back(std::make_unique<AttentionHalf>(*this, config, names, layer, std::move(rotary), place));
  halves_.push_back(std::make_unique<MlpHalf>(*this, config, names, place));
}

void DecoderBlock::drop_tables() {
  for (const auto& half : halves_) half->drop_tables();
}

at::Tensor DecoderBlock::forward(const at::Tensor& x, const ForwardContext& context) {
  const bool recomputes = context.recompute_attention && at::GradMode::is_enabled();
  TokenPart y{x};
  for (const auto& half : halves_)
    y = recomputes && half->is_attention() ? again_in_backward(*half, y, context) : half->forward(y, context);
  return y.x;
}

TokenPart DecoderBlock::again_in_backward(const DecoderHalf& half, const TokenPart& x,
                                          const ForwardContext& context) const {
  std::vector<at::Tensor> trained;
  for (const int index : half.parameters())
    if (parameters_[std::size_t(index)].trainable) trained.push_back(parameters_[std::size_t(index)].tensor);
  const auto body = [&half, context](const at::Tensor& in) { return half.forward(TokenPart{in}, context).x; };
  return {recompute(body, x.x, trained)};
}

}  // namespace zero
