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

/// The heads that each rank of the context axis computes.
struct DealtHeads {
  std::vector<AttentionShape> shapes;  // by rank
  std::vector<std::int64_t> firsts;    // each rank's first query head
  RankColumns inputs, outputs;         // columns of qkv, and of attention's output
};

// Divides query heads over ranks as evenly as possible. If each rank then has whole groups of query heads, or a part of
// one group, the group shares its keys and values. Otherwise each query head has a copy of its own.
DealtHeads deal_heads(const AttentionShape& all, std::int64_t ranks) {
  ZERO_CHECK(all.heads >= ranks, "every rank of the context axis has a head");
  const bool groups = all.heads % ranks == 0 && (all.kv_heads % ranks == 0 || ranks % all.kv_heads == 0);
  const auto begin_of = [&](std::int64_t rank) { return (all.heads * rank + ranks - 1) / ranks; };
  const auto kv_of = [&](std::int64_t query) { return query * all.kv_heads / all.heads; };
  DealtHeads dealt;
  for (std::int64_t r = 0; r < ranks; ++r) {
    const std::int64_t begin = begin_of(r), end = begin_of(r + 1);
    AttentionShape own = all;
    own.heads = end - begin;
    own.kv_heads = groups ? std::max<std::int64_t>(1, all.kv_heads / ranks) : own.heads;
    std::vector<TensorCut::Window> input, output;
    const auto take = [&](std::vector<TensorCut::Window>& windows, std::int64_t head, std::int64_t count) {
      windows.push_back({head * all.head_dim, count * all.head_dim});
    };
    take(output, begin, own.heads);
    take(input, begin, own.heads);
    for (const std::int64_t first : {all.heads, all.heads + all.kv_heads}) {  // keys, values
      if (groups)
        take(input, first + kv_of(begin), own.kv_heads);
      else
        for (std::int64_t query = begin; query < end; ++query) take(input, first + kv_of(query), 1);
    }
    dealt.shapes.push_back(own);
    dealt.firsts.push_back(begin);
    dealt.inputs.push_back(std::move(input));
    dealt.outputs.push_back(std::move(output));
  }
  return dealt;
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
      first_head_(shape_.heads * place.rank),
      dropout_(c.trained_dropout().attention, unit.name() + " attention"),
      norm_(c.norm),
      norms_all_heads_(c.head_norm == HeadNorm::all_heads),
      eps_(c.rms_norm_eps),
      rotary_(std::move(rotary)),
      input_(unit, names.before_attention, qkv_modules(c, names), c, names, place),
      q_norm_(add_head_norm(unit, names.q_norm, c.num_attention_heads, c, place)),
      k_norm_(add_head_norm(unit, names.k_norm, c.num_key_value_heads, c, place)),
      output_(unit, output_modules(c, names), names.after_attention, c, names, place) {}

// A norm over all heads is split by heads. A norm of each head is replicated.
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
  if (split.has_parts()) return attend_swapped({qkv}, split, context);
  return {attention(qkv, shape_, *rotary_, *context.batch, dropout_.of_heads(context, first_head_))};
}

WidthPart AttentionHalf::attend_swapped(const WidthPart& qkv, const TokenSplit& split,
                                        const ForwardContext& context) const {
  const DealtHeads dealt = deal_heads(shape_, split.context().size());
  const auto rank = std::size_t(split.context().rank());
  const HeadDropout dropout = dropout_.of_heads(context, first_head_ + dealt.firsts[rank]);
  const at::Tensor mine = swap_to_columns(qkv, split, dealt.inputs);
  return swap_to_tokens(attention(mine, dealt.shapes[rank], *rotary_, *context.batch, dropout), split, dealt.outputs);
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
