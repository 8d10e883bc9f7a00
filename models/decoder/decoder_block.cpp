#include "models/decoder/decoder_block.h"

#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "models/decoder/attention_half.h"
#include "models/decoder/mlp_half.h"
#include "models/nn/recompute.h"
#include "models/nn/token_tiles.h"
#include "models/parallel/token_split.h"

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
  TokenPart y{x};
  for (const auto& half : halves_) y = run(*half, y, context);
  return y.x;
}

TokenPart DecoderBlock::run(const DecoderHalf& half, const TokenPart& x, const ForwardContext& of_block) const {
  ForwardContext context = of_block;
  context.only_gradient = of_block.only_gradient && &half == halves_.back().get();
  if (context.recompute_attention && half.is_attention() && at::GradMode::is_enabled())
    return again_in_backward(half, x, context);
  const bool is_long = context.mlp_tokens > 0 && x.x.size(0) * x.x.size(1) > context.mlp_tokens;
  return is_long && half.is_tokenwise() ? by_tiles(half, x, context) : half.forward(x, context);
}

TokenPart DecoderBlock::again_in_backward(const DecoderHalf& half, const TokenPart& x,
                                          const ForwardContext& context) const {
  const auto body = [&half, context](const at::Tensor& in) {
    ForwardContext own = context;
    own.only_gradient = at::GradMode::is_enabled();
    return half.forward(TokenPart{in}, own).x;
  };
  return {recompute(body, x.x, trained_by(half))};
}

TokenPart DecoderBlock::by_tiles(const DecoderHalf& half, const TokenPart& x, const ForwardContext& context) const {
  ZERO_CHECK(!TokenSplit(context).divides(), "ranks of a tensor axis divide the width of an MLP, not its tokens");
  const auto body = [&half, context, length = x.x.size(1)](const at::Tensor& tile, std::int64_t first) {
    ForwardContext own = context;
    own.tile = {first, length};
    own.only_gradient = at::GradMode::is_enabled();
    return half.forward(TokenPart{tile}, own).x;
  };
  return {by_token_tiles(body, x.x, {context.mlp_tokens, context.only_gradient}, trained_by(half))};
}

std::vector<at::Tensor> DecoderBlock::trained_by(const DecoderHalf& half) const {
  std::vector<at::Tensor> trained;
  for (const int index : half.parameters())
    if (parameters_[std::size_t(index)].trainable) trained.push_back(parameters_[std::size_t(index)].tensor);
  return trained;
}

}  // namespace zero
