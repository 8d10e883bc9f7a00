// Gemma 3, text only (Gemma Team 2025): local and global layers with a rope each, norms of query and key heads, GeGLU,
// scaled embeddings. Each block has four norms, whose weights are stored minus 1.
#include <cmath>

#include "models/families/decoder_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

/// rope_parameters has an object per kind of layer. Older files have rope_theta and rope_scaling for global layers and
/// rope_local_base_freq for local ones.
void read_ropes(ConfigFields& fields, ModelConfig& config) {
  const RopeRules rules{.max_position_embeddings = config.max_position_embeddings};
  RopeFields global{1e6, {}}, local{1e4, {}};
  fields.number("rope_local_base_freq", local.theta);
  if (const nlohmann::json* both = fields.find("rope_parameters")) {
    for (const auto& [name, object] : both->items())
      if ((name != "full_attention" && name != "sliding_attention") || !object.is_object())
        fields.refuse("rope_parameters must have two objects, \"full_attention\" and \"sliding_attention\"");
    fields.number("rope_theta", global.theta);
    if (fields.find("rope_scaling")) fields.refuse("rope_scaling and rope_parameters are both there; remove one");
    if (both->contains("full_attention")) global = read_rope_object((*both)["full_attention"], global, rules, fields);
    if (both->contains("sliding_attention"))
      local = read_rope_object((*both)["sliding_attention"], local, rules, fields);
  } else {
    global = read_rope(fields, global, rules);
  }
  if (global.share != 1 || local.share != 1) fields.refuse("partial_rotary_factor other than 1 is not supported");
  config.rope_theta = global.theta;
  config.rope_scaling = global.scaling;
  config.local_rope_theta = local.theta;
  config.local_rope_scaling = local.scaling;
}

void read_layers(ConfigFields& fields, ModelConfig& config) {
  std::int64_t pattern = 6;
  double scalar = 256;
  fields.integer("sliding_window_pattern", pattern);
  fields.number("query_pre_attn_scalar", scalar);
  if (pattern < 1 || !(scalar > 0)) fields.refuse("sliding_window_pattern and query_pre_attn_scalar must be above 0");
  std::vector<bool> slides;
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) slides.push_back((i + 1) % pattern != 0);
  slides = read_layer_types(fields, config).value_or(slides);
  set_windows(fields, config, slides, read_window(fields, 4096));
  for (std::size_t i = 0; i < slides.size(); ++i) {
    config.layers[i].scale = 1 / std::sqrt(scalar);
    if (slides[i]) config.layers[i].rope = LayerAttention::Rope::local;
  }
}

void read(ConfigFields& fields, ModelConfig& config) {
  config.max_position_embeddings = 131072;
  config.num_key_value_heads = 4;
  config.head_dim = 256;
  config.rms_norm_eps = 1e-6;
  config.bos_token_id = 2;
  config.eos_token_ids = {1};
  config.tie_word_embeddings = true;
  config.activation = Activation::gelu_tanh;
  read_sizes(fields, config);
  read_ropes(fields, config);
  read_layers(fields, config);
  read_activation(fields, "hidden_activation", config);
  read_attention_bias(fields, config);
  fields.only("use_bidirectional_attention", "false");
  config.norm = NormKind::rms_plus_one;
  config.head_norm = HeadNorm::each_head;
  config.embedding_scale = std::sqrt(double(config.hidden_size));
}

DecoderNames names() {
  DecoderNames names;
  names.after_attention = "post_attention_layernorm";
  names.before_mlp = "pre_feedforward_layernorm";
  names.after_mlp = "post_feedforward_layernorm";
  return names;
}

GgufArchitecture gguf() {
  return {.name = "gemma3",
          .activation = Activation::gelu_tanh,
          .norm = NormKind::rms_plus_one,
          .head_norm = HeadNorm::each_head,
          .scaled_embedding = true,
          .local_layers = true,
          .wide_scale_at = 62};
}

}  // namespace

const Family& gemma3_family() {
  static const Family family{"gemma3_text", "Gemma3ForCausalLM", read, names(), gguf()};
  return family;
}

}  // namespace zero
