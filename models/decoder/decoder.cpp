#include "models/decoder/decoder.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include "base/error.h"
#include "base/log.h"
#include "models/decoder/decoder_block.h"
#include "models/decoder/dropout_place.h"
#include "models/nn/embedding.h"
#include "models/nn/head.h"
#include "models/ops/kv_cache.h"
#include "models/parallel/activations.h"

namespace zero {
namespace {

/// The embedding or the head, split by tokens of the vocabulary.
TensorSpec vocabulary_matrix(const std::string& module, const ModelConfig& config, SlicePlace place) {
  return slice_of({module + ".weight", {config.vocab_size, config.hidden_size}}, 0, {config.vocab_size}, place);
}

/// The first token of this rank's slice of the vocabulary.
std::int64_t first_token(const ModelConfig& config, SlicePlace place) {
  return config.vocab_size * place.rank / place.ranks;
}

class DecoderEmbedding : public Unit {
 public:
  DecoderEmbedding(const ModelConfig& config, const DecoderNames& names, SlicePlace place)
      : Unit(names.embedding),
        dropout_(config.trained_dropout().embedding, names.embedding + " of tokens and positions"),
        scale_(config.embedding_scale),
        first_token_(first_token(config, place)) {
    parameters_.push_back(matrix_parameter({vocabulary_matrix(names.embedding, config, place)}, config));
    if (config.learned_positions)
      parameters_.push_back(matrix_parameter(
          {{names.positions + ".weight", {config.max_position_embeddings, config.hidden_size}}}, config));
  }

  at::Tensor forward(const at::Tensor&, const ForwardContext& context) override {
    if (context.cache) context.cache->begin_pass(*context.batch);
    const TokenSplit split(context);
    at::Tensor x = looked_up(context, split).x;
    // the factor has the weights' type, as in transformers
    if (scale_ != 1) x = x * at::scalar_tensor(scale_, x.options().device(at::kCPU)).to(x.device());
    if (parameters_.size() > 1) x = x + embed(own(positions(context), split), parameters_[1].tensor);
    return dropout_.drop(x, context);
  }

  bool backward_reads_weights() const override { return false; }

 private:
  TokenPart looked_up(const ForwardContext& context, const TokenSplit& split) const {
    const at::Tensor &ids = context.batch->ids, &table = parameters_[0].tensor;
    if (!split.any()) return {embed(ids, table)};
    const at::Tensor part = split.has_parts() ? split.part_rows(ids.reshape({-1})).unsqueeze(0) : ids;
    if (!split.divides()) return {embed(part, table)};
    return scatter_tokens(PartialSum{embed_slice(part, table, first_token_)}, split);
  }

  /// Those of this rank's tokens, [1, own].
  static at::Tensor own(const at::Tensor& of_tokens, const TokenSplit& split) {
    return split.any() ? split.own_rows(of_tokens.reshape({-1})).unsqueeze(0) : of_tokens;
  }

  static at::Tensor positions(const ForwardContext& context) {
    const Batch& batch = *context.batch;
    if (batch.positions.defined()) return batch.positions;
    const std::int64_t length = batch.ids.size(1), end = context.cache ? context.cache->length() : length;
    return at::arange(end - length, end, batch.ids.options()).expand(batch.ids.sizes());
  }

  DropoutPlace dropout_;
  double scale_;
  std::int64_t first_token_;
};

class DecoderHead : public Unit {
 public:
  DecoderHead(const ModelConfig& config, const DecoderNames& names, SlicePlace place)
      : Unit(names.head),
        norm_(parameters_, names.final_norm, config),
        contained_(config.norm != NormKind::layer),
        eps_(config.rms_norm_eps),
        scale_(config.logits_scale),
        first_token_(first_token(config, place)),
        vocabulary_(config.vocab_size) {
    if (config.tie_word_embeddings) {
      borrowed_ = {BorrowedParameter{0, 0, {}}};
    } else {
      output_ = int(parameters_.size());
      parameters_.push_back(matrix_parameter({vocabulary_matrix(names.head, config, place)}, config));
    }
  }

  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) override {
    return head_loss(normed(x), weights(), context);
  }

  at::Tensor logits(const at::Tensor& x, const ForwardContext& context) const {
    return head_logits(normed(x), weights(), context);
  }
  at::Tensor token_losses(const at::Tensor& x, const ForwardContext& context) const {
    return head_token_losses(normed(x), weights(), context);
  }

 private:
  /// The loss includes an RMSNorm. Any other norm is applied before it.
  at::Tensor normed(const at::Tensor& x) const {
    return contained_ ? x : scaled(norm_.apply(parameters_, {x}).x).to(x.scalar_type());
  }

  HeadWeights weights() const {
    return {contained_ ? scaled(norm_.weight(parameters_)) : at::Tensor(),
            output_ < 0 ? borrowed_[0].tensor : parameters_[output_].tensor, eps_, first_token_, vocabulary_};
  }

  /// Scales the logits through the norm's weight, or through normed rows: there are fewer of these numbers.
  at::Tensor scaled(const at::Tensor& x) const {
    return scale_ == 1 ? x : x.to(at::toOpMathType(x.scalar_type())) * scale_;
  }

  DecoderNorm norm_;
  bool contained_;
  double eps_, scale_;
  std::int64_t first_token_, vocabulary_;
  int output_ = -1;
};

/// One table for all blocks of a kind.
struct Tables {
  explicit Tables(const ModelConfig& c) {
    const auto turned = std::int64_t(double(c.head_dim) * c.rotary_share);
    global = std::make_shared<Rotary>(c.head_dim, c.rope_theta, c.rope_scaling, turned);
    local = std::make_shared<Rotary>(c.head_dim, c.local_rope_theta, c.local_rope_scaling, turned);
    none = std::make_shared<Rotary>(c.head_dim, 1.0, std::nullopt, 0);
  }
  const std::shared_ptr<Rotary>& of(LayerAttention::Rope rope) const {
    return rope == LayerAttention::Rope::none ? none : rope == LayerAttention::Rope::local ? local : global;
  }
  std::shared_ptr<Rotary> global, local, none;
};

}  // namespace

Model make_decoder(const ModelConfig& config, const DecoderNames& names, SlicePlace place) {
  Model model{config, {}};
  model.units.push_back(std::make_unique<DecoderEmbedding>(config, names, place));
  const Tables tables(config);
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer)
    model.units.push_back(
        std::make_unique<DecoderBlock>(config, names, layer, tables.of(config.layer(layer).rope), place));
  model.units.push_back(std::make_unique<DecoderHead>(config, names, place));
  return model;
}

std::string why_not_cut(const ModelConfig& config, int ranks) {
  if (config.num_attention_heads % ranks != 0 || config.num_key_value_heads % ranks != 0)
    return text("must divide the model's ", config.num_attention_heads, " attention heads and ",
                config.num_key_value_heads, " key-value heads");
  if (config.intermediate_size < ranks || config.vocab_size < ranks)
    return text("must exceed neither the model's intermediate_size, ", config.intermediate_size,
                ", nor its vocab_size, ", config.vocab_size);
  return "";
}

std::string why_not_swapped(const ModelConfig& config, int tensor_ranks, int ranks) {
  const std::int64_t heads = config.num_attention_heads / tensor_ranks;
  if (ranks <= heads) return "";
  return text("must not exceed the ", heads, " attention heads of ", tensor_ranks > 1 ? "a rank" : "the model",
              ", since every rank of the axis needs at least one");
}

namespace {

const DecoderHead& decoder_head(const Unit& unit) {
  const auto* head = dynamic_cast<const DecoderHead*>(&unit);
  ZERO_CHECK(head, "logits and losses of tokens come from the last unit of the chain, not from " + unit.name());
  return *head;
}

}  // namespace

at::Tensor logits_of(Unit& head, const at::Tensor& x, const ForwardContext& context) {
  return decoder_head(head).logits(x, context);
}

at::Tensor token_losses_of(Unit& head, const at::Tensor& x, const ForwardContext& context) {
  return decoder_head(head).token_losses(x, context);
}

}  // namespace zero
