#include "models/formats/gguf/gguf_check.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "models/families/families.h"

namespace zero {
namespace {

class Check {
 public:
  explicit Check(const ModelConfig& config) : config_(config), family_(gguf_family(config.model_type)) {}

  void run() const {
    every_part();
    parts();
    positions();
    scores();
    family_.gguf.local_layers ? local_layers() : windows();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(text("a GGUF file of model_type \"", config_.model_type, "\" is not written of a model with ",
                          what, ", which llama.cpp's architecture \"", family_.gguf.name,
                          "\" does not have; export a Hugging Face directory, by leaving --gguf out"));
  }
  void unless(bool fits, const char* what) const {
    if (!fits) refuse(what);
  }

  /// Names every field: if a new one is added, this does not compile until it is decided if a GGUF file can hold it.
  void every_part() const {
    const auto& [model_type, vocab_size, hidden_size, intermediate_size, layers, heads, kv_heads, head_dim, context,
                 eps, theta, scaling, tied, initial, residual_initial, bos, eos, head_dim_given, norm, head_norm,
                 activation, gated, qkv_bias, output_bias, mlp_bias, learned_positions, rotary_share, embedding_scale,
                 residual_scale, logits_scale, local_theta, local_scaling, each_layer, dropout, run_dropout, fields] =
        config_;
    const GgufArchitecture& there = family_.gguf;
    unless(norm == there.norm, "norms of this kind");
    unless(head_norm == there.head_norm,
           head_norm == HeadNorm::none ? "queries and keys without a norm" : "norms of queries and keys");
    unless(gated == there.gated, gated ? "a gated MLP" : "an MLP without a gate");
    unless(learned_positions == there.learned_positions,
           learned_positions ? "learned positions" : "no learned positions");
    if (there.multipliers) return;
    if (residual_scale != 1) refuse(text("additions to the residual stream times ", residual_scale));
    if (logits_scale != 1) refuse(text("logits times ", logits_scale));
    const double scale = there.scaled_embedding ? std::sqrt(double(hidden_size)) : 1;
    if (std::fabs(embedding_scale / scale - 1) > 1e-6)
      refuse(text("embeddings times ", embedding_scale, ", where they are times ", scale));
  }

  void parts() const {
    using Biases = GgufArchitecture::Biases;
    const Biases biases = family_.gguf.biases;
    unless(!config_.qkv_bias || biases != Biases::none, "biases of q, k and v");
    const bool all = biases == Biases::all || biases == Biases::as_configured;
    unless((!config_.output_bias && !config_.mlp_bias) || all, "biases of the attention's output or of the MLP");
    unless((config_.qkv_bias && config_.output_bias && config_.mlp_bias) || biases != Biases::all,
           "projections without biases");
    unless(config_.activation == family_.gguf.activation, "this activation");
    unless(family_.gguf.any_head_dim || config_.head_dim * config_.num_attention_heads == config_.hidden_size,
           "a head_dim other than hidden_size / num_attention_heads");
  }

  void positions() const {
    unless(config_.rotary_share == 1 || family_.gguf.partial_rotary, "heads that turn in part");
    unless(!config_.local_rope_scaling, "a rope_type other than \"default\" in local layers");
    for (std::int64_t i = 0; i < config_.num_hidden_layers && !config_.learned_positions; ++i) {
      const bool plain = config_.layer(i).rope == LayerAttention::Rope::none,
                 wanted = family_.gguf.plain_step > 0 && (i + 1) % family_.gguf.plain_step == 0;
      if (plain != wanted)
        refuse(text("layer ", i, plain ? " without rope" : " with rope", ", where ",
                    family_.gguf.plain_step > 0 ? text("every ", family_.gguf.plain_step, "th layer has none")
                                                : "all layers have it"));
    }
    if (!config_.rope_scaling) return;
    const RopeScaling& scaling = *config_.rope_scaling;
    unless(!std::holds_alternative<Llama3Scaling>(scaling) || family_.gguf.frequency_factors, "rope_type \"llama3\"");
    unless(!std::holds_alternative<LongRopeScaling>(scaling) || family_.gguf.long_factors, "rope_type \"longrope\"");
    if (const auto* yarn = std::get_if<YarnScaling>(&scaling))
      unless(yarn->truncate, "rope_type \"yarn\" and truncate = false");
  }

  void scores() const {
    if (family_.gguf.multipliers) {
      for (const LayerAttention& layer : config_.layers)
        unless(layer.scale == config_.layer(0).scale, "scores scaled differently by layer");
      return;
    }
    const bool wide = config_.num_hidden_layers == family_.gguf.wide_scale_at;
    const double width = wide ? double(config_.hidden_size) / double(config_.num_attention_heads) : config_.head_dim;
    for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i) {
      const double scale = config_.layer(i).scale;
      if (scale != 0 && std::fabs(scale * std::sqrt(width) - 1) > 1e-6)
        refuse(text("scores of layer ", i, " times ", scale, ", where only 1 / sqrt(", width, ") is done"));
    }
  }

  /// A window as long as the context has no effect.
  void windows() const {
    std::int64_t shortest = config_.max_position_embeddings;
    for (const LayerAttention& layer : config_.layers)
      if (layer.window > 0) shortest = std::min(shortest, layer.window);
    if (shortest < config_.max_position_embeddings)
      throw InputError(text(
          "a GGUF file of model_type \"", config_.model_type, "\" is not written of a model that sees ", shortest,
          " tokens (sliding_window) in a context of ", config_.max_position_embeddings, ": llama.cpp's architecture \"",
          family_.gguf.name, "\" has no windows; set max_position_embeddings = ", shortest,
          " in config.json for a file of that context, within which both are the same"));
  }

  void local_layers() const {
    for (const LayerAttention& layer : config_.layers)
      unless((layer.window > 0) == (layer.rope == LayerAttention::Rope::local), "local layers without window");
    if (!window_pattern(config_))
      refuse(
          "these layer_types; it has \"full_attention\" in every n-th layer and \"sliding_attention\" in all others");
    std::int64_t window = 0;
    for (const LayerAttention& layer : config_.layers) {
      unless(window == 0 || layer.window == 0 || layer.window == window, "windows of several sizes");
      window = std::max(window, layer.window);
    }
  }

  const ModelConfig& config_;
  const Family& family_;
};

}  // namespace

const Family& require_gguf(const Family& family) {
  if (family.gguf.name.empty())
    throw InputError(
        text("model_type \"", family.model_type,
             "\": zero does not know its form in llama.cpp, so it neither reads nor writes GGUF files of it; "
             "export a Hugging Face directory instead, by leaving --gguf out"));
  return family;
}

const Family& gguf_family(const std::string& model_type) { return require_gguf(family_of(model_type)); }

std::optional<std::int64_t> window_pattern(const ModelConfig& config) {
  const std::int64_t layers = config.num_hidden_layers;
  const auto slides = [&](std::int64_t i) { return config.layer(i).window > 0; };
  const auto fits = [&](std::int64_t pattern) {
    for (std::int64_t i = 0; i < layers; ++i)
      if (slides(i) != ((i + 1) % pattern != 0)) return false;
    return true;
  };
  if (fits(usual_window_pattern)) return usual_window_pattern;
  for (std::int64_t pattern = 2; pattern <= layers + 1; ++pattern)
    if (fits(pattern)) return pattern;
  return std::nullopt;
}

void check_gguf(const ModelConfig& config) { Check(config).run(); }

}  // namespace zero
