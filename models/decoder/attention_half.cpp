#include "models/decoder/attention_half.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "models/nn/heads.h"
#include "models/ops/kv_cache.h"
#include "models/parallel/head_swap.h"

namespace zero {
namespace {

AttentionShape attention_shape(const ModelConfig& c, std::int64_t layer, SlicePlace place) {
  ZERO_CHECK(c.num_attention_heads % place.ranks == 0 && c.num_key_value_heads % place.ranks == 0,
             "the ranks of the tensor axis do not divide the heads");
  const LayerAttention kind = c.layer(layer);
  return {c.num_attention_heads / place.ranks, c.num_key_value_heads / place.ranks, c.head_dim, kind.window,
          kind.scale};
}

std::int64_t turned_dimensions(const ModelConfig& c, std::int64_t layer) {
  const bool turns = c.layer(layer).rope != LayerAttention::Rope::none;
  return turns ? std::int64_t(double(c.head_dim) * c.rotary_share) : c.head_dim;
}

ProjectionModules qkv_modules(const ModelConfig& c, const DecoderNames& names) {
  const std::int64_t q = c.num_attention_heads * c.head_dim, kv = c.num_key_value_heads * c.head_dim;
  return {names.qkv, {q, kv, kv}, c.hidden_size, c.qkv_bias};
}

ProjectionModules output_modules(const ModelConfig& c, const DecoderNames& names) {
  return {{names.attention_output}, {c.hidden_size}, c.num_attention_heads * c.head_dim, c.output_bias};
}

}  // namespace

AttentionHalf::AttentionHalf(Unit& unit, const ModelConfig& c, const DecoderNames& names, std::int64_t layer,
                             std::shared_ptr<Rotary> rotary, SlicePlace place)
    : unit_(unit),
      layer_(layer),
      turned_(turned_dimensions(c, layer)),
      shape_(attention_shape(c, layer, place)),
      norm_(c.norm),
      norms_all_heads_(c.head_norm == HeadNorm::all_heads),
      eps_(c.rms_norm_eps),
      rotary_(std::move(rotary)),
      input_(unit, names.before_attention, qkv_modules(c, names), c, names, place),
      q_norm_(add_head_norm(unit, names.q_norm, c.num_attention_heads, c, place)),
      k_norm_(add_head_norm(unit, names.k_norm, c.num_key_value_heads, c, place)),
      output_(unit, output_modules(c, names), names.after_attention, c, names, place) {}

// A norm over all heads is cut by heads. One of each head is whole.
int AttentionHalf::add_head_norm(Unit& unit, const std::string& module, std::int64_t heads, const ModelConfig& config,
                                 SlicePlace place) {
  if (config.head_norm == HeadNorm::none) return -1;
  TensorSpec weight{unit.name() + "." + module + ".weight", {config.head_dim}};
  if (config.head_norm == HeadNorm::all_heads) {
    weight.shape = {heads * config.head_dim};
    weight = slice_of(std::move(weight), 0, {heads * config.head_dim}, place);
  }
  const Init start = config.norm == NormKind::rms_plus_one ? Init::zeros : Init::ones;
  unit.parameters().push_back({{std::move(weight)}, true, start, 0, {}});
  return int(unit.parameters().size()) - 1;
}

TokenPart AttentionHalf::forward(const TokenPart& x, const ForwardContext& context) const {
  const HalfInput::Result qkv = input_.apply(x, context);
  return output_.add(attend(qkv.y, context), qkv.x, context);
}

WidthPart AttentionHalf::attend(const WidthPart& projected, const ForwardContext& context) const {
  at::Tensor qkv = projected.x;
  if (q_norm_ >= 0)
    qkv = norm_heads(qkv, shape_, rms_weight(tensor(q_norm_), norm_), rms_weight(tensor(k_norm_), norm_), eps_,
                     norms_all_heads_ ? TokenSplit(context) : TokenSplit());
  if (turned_ < shape_.head_dim) qkv = heads_in_order(qkv, shape_, turned_);
  if (context.cache) return {cached_attention(qkv, shape_, *rotary_, *context.batch, {*context.cache, layer_})};
  const TokenSplit split(context);
  return split.has_parts() ? attend_swapped({qkv}, split, *context.batch)
                           : WidthPart{attention(qkv, shape_, *rotary_, *context.batch)};
}

WidthPart AttentionHalf::attend_swapped(const WidthPart& qkv, const TokenSplit& split, const Batch& batch) const {
  const std::int64_t ranks = split.context().size(), dim = shape_.head_dim;
  ZERO_CHECK(shape_.heads % ranks == 0 && (shape_.kv_heads % ranks == 0 || ranks % shape_.kv_heads == 0),
             "the ranks of the context axis do not divide the heads");
  AttentionShape own = shape_;
  own.heads = shape_.heads / ranks;
  own.kv_heads = std::max<std::int64_t>(1, shape_.kv_heads / ranks);  // several ranks may need the same one
  RankColumns heads_of_ranks, outputs_of_ranks;
  for (std::int64_t r = 0; r < ranks; ++r) {
    const std::int64_t q = r * own.heads, kv = q * shape_.kv_heads / shape_.heads;
    const auto window = [&](std::int64_t first, std::int64_t heads) {
      return TensorCut::Window{first * dim, heads * dim};
    };
    heads_of_ranks.push_back({window(q, own.heads), window(shape_.heads + kv, own.kv_heads),
                              window(shape_.heads + shape_.kv_heads + kv, own.kv_heads)});
    outputs_of_ranks.push_back({window(q, own.heads)});
  }
  const at::Tensor mine = swap_to_columns(qkv, split, heads_of_ranks);
  return swap_to_tokens(attention(mine, own, *rotary_, batch), split, outputs_of_ranks);
}

std::vector<int> AttentionHalf::parameters() const {
  std::vector<int> used;
  input_.list(used);
  output_.list(used);
  for (const int index : {q_norm_, k_norm_})
    if (index >= 0) used.push_back(index);
  return used;
}

}  // namespace zero
