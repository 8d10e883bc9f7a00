#include "models/llama/llama.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "models/nn/embedding.h"
#include "models/nn/head.h"
#include "models/nn/linear.h"
#include "models/nn/recompute.h"
#include "models/ops/attention.h"
#include "models/ops/kv_cache.h"

namespace zero {
namespace {

Parameter matrix(std::vector<TensorSpec> parts, const ModelConfig& config) {
  return {std::move(parts), true, Init::normal, config.initializer_range, {}};
}

Parameter norm(const std::string& name, const ModelConfig& config) {
  return {{{name, {config.hidden_size}}}, true, Init::ones, 0, {}};
}

class Embedding : public Unit {
 public:
  explicit Embedding(const ModelConfig& config) : Unit("model.embed_tokens") {
    parameters_ = {matrix({{"model.embed_tokens.weight", {config.vocab_size, config.hidden_size}}}, config)};
  }

  at::Tensor forward(const at::Tensor&, const ForwardContext& context) override {
    if (context.cache) context.cache->begin_pass(*context.batch);
    return embed(context.batch->ids, parameters_[0].tensor);
  }

  bool backward_reads_weights() const override { return false; }
};

class Block : public Unit {
 public:
  Block(const ModelConfig& c, std::int64_t layer, std::shared_ptr<Rotary> rotary)
      : Unit("model.layers." + std::to_string(layer)),
        eps_(c.rms_norm_eps),
        layer_(layer),
        shape_{c.num_attention_heads, c.num_key_value_heads, c.head_dim},
        rotary_(std::move(rotary)) {
    const std::int64_t q = c.num_attention_heads * c.head_dim, kv = c.num_key_value_heads * c.head_dim;
    const std::string attention = name() + ".self_attn.", mlp = name() + ".mlp.";
    const auto weight = [](const std::string& name, std::int64_t out, std::int64_t in) {
      return TensorSpec{name + ".weight", {out, in}};
    };
    parameters_ = {
        norm(name() + ".input_layernorm.weight", c),
        matrix({weight(attention + "q_proj", q, c.hidden_size), weight(attention + "k_proj", kv, c.hidden_size),
                weight(attention + "v_proj", kv, c.hidden_size)},
               c),
        matrix({weight(attention + "o_proj", c.hidden_size, q)}, c),
        norm(name() + ".post_attention_layernorm.weight", c),
        matrix({weight(mlp + "gate_proj", c.intermediate_size, c.hidden_size),
                weight(mlp + "up_proj", c.intermediate_size, c.hidden_size)},
               c),
        matrix({weight(mlp + "down_proj", c.hidden_size, c.intermediate_size)}, c),
    };
  }

  void drop_tables() override { rotary_->drop(); }

  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) override {
    const bool again = context.recompute_attention && at::GradMode::is_enabled();
    const at::Tensor middle =
        again ? recompute([this, context](const at::Tensor& x) { return attend(x, context); }, x, attention_leaves())
              : attend(x, context);
    const at::Tensor gate_up =
        project(LinearInput::rms_norm(middle, tensor(post_attention_norm), eps_), gate_up_proj, {}, context);
    return project(LinearInput::swiglu(gate_up), down_proj, middle, context);
  }

 private:
  enum Index { input_norm, qkv_proj, o_proj, post_attention_norm, gate_up_proj, down_proj };
  const at::Tensor& tensor(int index) const { return parameters_[index].tensor; }

  // The attention half: x and what attention adds to it.
  at::Tensor attend(const at::Tensor& x, const ForwardContext& context) const {
    const at::Tensor qkv = project(LinearInput::rms_norm(x, tensor(input_norm), eps_), qkv_proj, {}, context);
    const at::Tensor heads = context.cache
                                 ? cached_attention(qkv, shape_, *rotary_, *context.batch, {*context.cache, layer_})
                                 : attention(qkv, shape_, *rotary_, *context.batch);
    return project(LinearInput::plain(heads), o_proj, x, context);
  }

  std::vector<at::Tensor> attention_leaves() const {
    std::vector<int> used{input_norm, qkv_proj, o_proj};
    for (const Adapter& adapter : adapters_)
      if (adapter.parameter == qkv_proj || adapter.parameter == o_proj)
        used.insert(used.end(), {adapter.a, adapter.b, adapter.magnitude});
    std::vector<at::Tensor> leaves;
    for (const int index : used)
      if (index >= 0 && parameters_[index].trainable) leaves.push_back(tensor(index));
    return leaves;
  }

  at::Tensor project(const LinearInput& input, Index weight, const at::Tensor& residual,
                     const ForwardContext& context) const {
    std::vector<LowRank> adapters;
    for (const Adapter& adapter : adapters_)
      if (adapter.parameter == weight) adapters.push_back(low_rank(adapter, context, input.x.size(1)));
    return linear(input, tensor(weight), residual, adapters);
  }

  LowRank low_rank(const Adapter& adapter, const ForwardContext& context, std::int64_t sequence) const {
    LowRank tensors{tensor(adapter.a), tensor(adapter.b),
                    adapter.magnitude < 0 ? at::Tensor() : tensor(adapter.magnitude)};
    tensors.begin = adapter.begin;
    tensors.scale = adapter.scale;
    tensors.dropout = context.training ? adapter.dropout : 0.0;
    tensors.seed = context.seed ^ adapter.seed;
    tensors.first_sample = context.first_sample;
    tensors.sequence = sequence;
    return tensors;
  }

  double eps_;
  std::int64_t layer_;
  AttentionShape shape_;
  std::shared_ptr<Rotary> rotary_;  // one table for all blocks
};

class Head : public Unit {
 public:
  explicit Head(const ModelConfig& config) : Unit("lm_head"), eps_(config.rms_norm_eps) {
    parameters_ = {norm("model.norm.weight", config)};
    if (config.tie_word_embeddings)
      borrowed_ = {BorrowedParameter{0, 0, {}}};
    else
      parameters_.push_back(matrix({{"lm_head.weight", {config.vocab_size, config.hidden_size}}}, config));
  }

  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) override {
    return head_loss(x, weights(), context.batch->targets, {context.logits_bytes, context.batch->meta.ignores_targets});
  }

  at::Tensor logits(const at::Tensor& x) const { return head_logits(x, weights()); }

 private:
  HeadWeights weights() const {
    return {parameters_[0].tensor, borrowed_.empty() ? parameters_[1].tensor : borrowed_[0].tensor, eps_};
  }

  double eps_;
};

}  // namespace

Model make_llama(const ModelConfig& config) {
  Model model{config, {}};
  model.units.push_back(std::make_unique<Embedding>(config));
  const auto rotary = std::make_shared<Rotary>(config.head_dim, config.rope_theta, config.rope_scaling);
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer)
    model.units.push_back(std::make_unique<Block>(config, layer, rotary));
  model.units.push_back(std::make_unique<Head>(config));
  return model;
}

at::Tensor logits_of(Unit& head, const at::Tensor& x) {
  const Head* llama_head = dynamic_cast<const Head*>(&head);
  ZERO_CHECK(llama_head, "logits_of() needs the last unit of the chain, not " + head.name());
  return llama_head->logits(x);
}

}  // namespace zero
