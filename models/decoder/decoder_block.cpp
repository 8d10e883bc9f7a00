#include "models/decoder/decoder_block.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "models/nn/heads.h"
#include "models/nn/recompute.h"
#include "models/ops/kv_cache.h"

namespace zero {
namespace {

AttentionShape shape_of(const ModelConfig& c, std::int64_t layer) {
  const LayerAttention kind = c.layer(layer);
  return {c.num_attention_heads, c.num_key_value_heads, c.head_dim, kind.window, kind.scale};
}

std::int64_t turned_of(const ModelConfig& c, std::int64_t layer) {
  const bool turns = c.layer(layer).rope != LayerAttention::Rope::none;
  return turns ? std::int64_t(double(c.head_dim) * c.rotary_share) : c.head_dim;
}

}  // namespace

DecoderBlock::DecoderBlock(const ModelConfig& c, const DecoderNames& names, std::int64_t layer,
                           std::shared_ptr<Rotary> rotary)
    : Unit(names.layers + "." + std::to_string(layer)),
      layer_(layer),
      turned_(turned_of(c, layer)),
      shape_(shape_of(c, layer)),
      activation_{c.activation, c.gated},
      norm_(c.norm),
      eps_(c.rms_norm_eps),
      input_first_(names.input_first),
      rotary_(std::move(rotary)) {
  const std::int64_t q = c.num_attention_heads * c.head_dim, kv = c.num_key_value_heads * c.head_dim,
                     inner = c.intermediate_size;
  const auto norm = [&](const std::string& module) {
    return DecoderNorm(parameters_, module.empty() ? "" : name() + "." + module, c);
  };
  attention_.before = norm(names.before_attention);
  attention_.input = add_projection(names.qkv, {q, kv, kv}, c.hidden_size, c.qkv_bias, c, names);
  if (c.head_norm != HeadNorm::none) {
    q_norm_ = add_head_norm(names.q_norm, c.num_attention_heads, c);
    k_norm_ = add_head_norm(names.k_norm, c.num_key_value_heads, c);
  }
  attention_.output = add_projection({names.attention_output}, {c.hidden_size}, q, c.output_bias, c, names);
  attention_.after = norm(names.after_attention);
  mlp_.before = norm(names.before_mlp);
  const std::vector<std::int64_t> rows = c.gated ? std::vector{inner, inner} : std::vector{inner};
  mlp_.input = add_projection(names.mlp_input, rows, c.hidden_size, c.mlp_bias, c, names);
  mlp_.output = add_projection({names.mlp_output}, {c.hidden_size}, inner, c.mlp_bias, c, names);
  mlp_.after = norm(names.after_mlp);
}

DecoderBlock::Projection DecoderBlock::add_projection(const std::vector<std::string>& modules,
                                                      const std::vector<std::int64_t>& out, std::int64_t in, bool bias,
                                                      const ModelConfig& config, const DecoderNames& names) {
  std::vector<std::int64_t> rows = out;
  if (modules.size() == 1) {  // one module of all
    rows = {0};
    for (const std::int64_t part : out) rows[0] += part;
  }
  std::vector<TensorSpec> weights, biases;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const std::string module = name() + "." + modules[i];
    weights.push_back({module + ".weight", {rows[i], in}});
    if (names.input_first) weights.back().shape = {in, rows[i]};
    biases.push_back({module + ".bias", {rows[i]}});
  }
  Projection projection{int(parameters_.size())};
  parameters_.push_back(matrix_parameter(std::move(weights), config));
  parameters_.back().input_first = names.input_first;
  if (!bias) return projection;
  projection.bias = int(parameters_.size());
  parameters_.push_back(bias_parameter(std::move(biases)));
  return projection;
}

int DecoderBlock::add_head_norm(const std::string& module, std::int64_t heads, const ModelConfig& config) {
  const std::int64_t width = config.head_norm == HeadNorm::all_heads ? heads * config.head_dim : config.head_dim;
  const Init start = norm_ == NormKind::rms_plus_one ? Init::zeros : Init::ones;
  parameters_.push_back({{{name() + "." + module + ".weight", {width}}}, true, start, 0, {}});
  return int(parameters_.size()) - 1;
}

at::Tensor DecoderBlock::forward(const at::Tensor& x, const ForwardContext& context) {
  const bool again = context.recompute_attention && at::GradMode::is_enabled();
  const at::Tensor middle =
      again ? recompute([this, context](const at::Tensor& x) { return attend(x, context); }, x, attention_leaves())
            : attend(x, context);
  const LinearBeside inner = project_beside(mlp_, middle, context);
  return add_output(LinearInput::activated(inner.y, activation_), mlp_, inner.x, context);
}

// The attention half: x and what attention adds to it.
at::Tensor DecoderBlock::attend(const at::Tensor& x, const ForwardContext& context) const {
  const LinearBeside qkv = project_beside(attention_, x, context);
  return add_output(LinearInput::plain(attention_heads(qkv.y, context)), attention_, qkv.x, context);
}

at::Tensor DecoderBlock::attention_heads(at::Tensor qkv, const ForwardContext& context) const {
  if (q_norm_ >= 0)
    qkv = norm_heads(qkv, shape_, rms_weight(tensor(q_norm_), norm_), rms_weight(tensor(k_norm_), norm_), eps_);
  if (turned_ < shape_.head_dim) qkv = heads_in_order(qkv, shape_, turned_);
  return context.cache ? cached_attention(qkv, shape_, *rotary_, *context.batch, {*context.cache, layer_})
                       : attention(qkv, shape_, *rotary_, *context.batch);
}

std::vector<at::Tensor> DecoderBlock::attention_leaves() const {
  std::vector<int> used{attention_.input.weight,
                        attention_.input.bias,
                        attention_.output.weight,
                        attention_.output.bias,
                        q_norm_,
                        k_norm_};
  attention_.before.list(used);
  attention_.after.list(used);
  for (const Adapter& adapter : adapters_)
    if (adapter.parameter == attention_.input.weight || adapter.parameter == attention_.output.weight)
      used.insert(used.end(), {adapter.a, adapter.b, adapter.magnitude});
  std::vector<at::Tensor> leaves;
  for (const int index : used)
    if (index >= 0 && parameters_[index].trainable) leaves.push_back(tensor(index));
  return leaves;
}

at::Tensor DecoderBlock::add_output(const LinearInput& input, const Half& half, const at::Tensor& x,
                                    const ForwardContext& context) const {
  if (!half.after.exists()) return project(input, half.output, x, context);
  return x + half.after.apply(parameters_, project(input, half.output, {}, context));
}

at::Tensor DecoderBlock::project(const LinearInput& input, const Projection& projection, const at::Tensor& residual,
                                 const ForwardContext& context) const {
  LinearInput own = input;
  own.keep = context.keep_inputs;
  return linear(own, weight(projection), residual, adapters_of(projection, context, input.x.size(1)), bias(projection));
}

LinearBeside DecoderBlock::project_beside(const Half& half, const at::Tensor& x, const ForwardContext& context) const {
  LinearInput input = half.before.input(parameters_, x);
  if (input.kind != LinearInput::Kind::rms_norm) return {project(input, half.input, {}, context), x};
  input.keep = context.keep_inputs;
  return linear_beside(input, weight(half.input), adapters_of(half.input, context, x.size(1)), bias(half.input));
}

at::Tensor DecoderBlock::weight(const Projection& projection) const {
  return input_first_ ? tensor(projection.weight).t() : tensor(projection.weight);
}

at::Tensor DecoderBlock::bias(const Projection& projection) const {
  return projection.bias < 0 ? at::Tensor() : tensor(projection.bias);
}

std::vector<LowRank> DecoderBlock::adapters_of(const Projection& projection, const ForwardContext& context,
                                               std::int64_t sequence) const {
  std::vector<LowRank> adapters;
  for (const Adapter& adapter : adapters_)
    if (adapter.parameter == projection.weight) adapters.push_back(low_rank(adapter, context, sequence));
  return adapters;
}

LowRank DecoderBlock::low_rank(const Adapter& adapter, const ForwardContext& context, std::int64_t sequence) const {
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

}  // namespace zero
