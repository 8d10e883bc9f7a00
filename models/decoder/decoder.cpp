#include "models/decoder/decoder.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/decoder/decoder_block.h"
#include "models/nn/embedding.h"
#include "models/nn/head.h"
#include "models/ops/kv_cache.h"

namespace zero {
namespace {

class DecoderEmbedding : public Unit {
 public:
  DecoderEmbedding(const ModelConfig& config, const DecoderNames& names)
      : Unit(names.embedding), scale_(config.embedding_scale) {
    const auto table = [&](const std::string& module, std::int64_t rows) {
      parameters_.push_back(matrix_parameter({{module + ".weight", {rows, config.hidden_size}}}, config));
    };
    table(names.embedding, config.vocab_size);
    if (config.learned_positions) table(names.positions, config.max_position_embeddings);
  }

  at::Tensor forward(const at::Tensor&, const ForwardContext& context) override {
    if (context.cache) context.cache->begin_pass(*context.batch);
    at::Tensor x = embed(context.batch->ids, parameters_[0].tensor);
    // as transformers: the factor is of the weights' type
    if (scale_ != 1) x = x * at::scalar_tensor(scale_, x.options().device(at::kCPU)).to(x.device());
    return parameters_.size() > 1 ? x + embed(positions(context), parameters_[1].tensor) : x;
  }

  bool backward_reads_weights() const override { return false; }

 private:
  static at::Tensor positions(const ForwardContext& context) {
    const Batch& batch = *context.batch;
    if (batch.positions.defined()) return batch.positions;
    const std::int64_t length = batch.ids.size(1), end = context.cache ? context.cache->length() : length;
    return at::arange(end - length, end, batch.ids.options()).expand(batch.ids.sizes());
  }

  double scale_;
};

class DecoderHead : public Unit {
 public:
  DecoderHead(const ModelConfig& config, const DecoderNames& names)
      : Unit(names.head),
        norm_(parameters_, names.final_norm, config),
        contained_(config.norm != NormKind::layer),
        eps_(config.rms_norm_eps) {
    if (config.tie_word_embeddings) {
      borrowed_ = {BorrowedParameter{0, 0, {}}};
    } else {
      output_ = int(parameters_.size());
      parameters_.push_back(
          matrix_parameter({{names.head + ".weight", {config.vocab_size, config.hidden_size}}}, config));
    }
  }

  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) override {
    return head_loss(normed(x), weights(), context);
  }

  at::Tensor logits(const at::Tensor& x) const { return head_logits(normed(x), weights()); }
  at::Tensor token_losses(const at::Tensor& x, const ForwardContext& context) const {
    return head_token_losses(normed(x), weights(), context);
  }

 private:
  /// The loss contains an RMSNorm; another norm stands before it.
  at::Tensor normed(const at::Tensor& x) const { return contained_ ? x : norm_.apply(parameters_, x); }

  HeadWeights weights() const {
    return {contained_ ? norm_.weight(parameters_) : at::Tensor(),
            output_ < 0 ? borrowed_[0].tensor : parameters_[output_].tensor, eps_};
  }

  DecoderNorm norm_;
  bool contained_;
  double eps_;
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

Model make_decoder(const ModelConfig& config, const DecoderNames& names) {
  Model model{config, {}};
  model.units.push_back(std::make_unique<DecoderEmbedding>(config, names));
  const Tables tables(config);
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer)
    model.units.push_back(std::make_unique<DecoderBlock>(config, names, layer, tables.of(config.layer(layer).rope)));
  model.units.push_back(std::make_unique<DecoderHead>(config, names));
  return model;
}

namespace {

const DecoderHead& decoder_head(const Unit& unit) {
  const auto* head = dynamic_cast<const DecoderHead*>(&unit);
  ZERO_CHECK(head, "logits and losses of tokens come from the last unit of the chain, not from " + unit.name());
  return *head;
}

}  // namespace

at::Tensor logits_of(Unit& head, const at::Tensor& x) { return decoder_head(head).logits(x); }

at::Tensor token_losses_of(Unit& head, const at::Tensor& x, const ForwardContext& context) {
  return decoder_head(head).token_losses(x, context);
}

}  // namespace zero
