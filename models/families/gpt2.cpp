// GPT-2 (Radford et al. 2019): layer norms, biases, learned positions, an MLP without a gate, weights stored [in, out].
// Section 2.3: the initial weights of residual layers are divided by the square root of their number.
#include <cmath>

#include "models/families/decoder_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

void read_sizes_of_gpt2(ConfigFields& fields, ModelConfig& config) {
  fields.required("vocab_size", config.vocab_size);
  fields.required("n_embd", config.hidden_size);
  read_layer_count(fields, "n_layer", config);
  fields.required("n_head", config.num_attention_heads);
  config.num_key_value_heads = config.num_attention_heads;
  if (config.num_attention_heads > 0) config.head_dim = config.hidden_size / config.num_attention_heads;
  config.intermediate_size = 4 * config.hidden_size;
  fields.integer("n_inner", config.intermediate_size);
  config.max_position_embeddings = 1024;
  fields.integer("n_positions", config.max_position_embeddings);
}

/// Layers without rope. Scores may be unscaled, or also divided by the layer's number.
void read_layers(ConfigFields& fields, ModelConfig& config) {
  bool scaled = true, by_layer = false;
  fields.flag("scale_attn_weights", scaled);
  fields.flag("scale_attn_by_inverse_layer_idx", by_layer);
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    const double scale = scaled ? 1 / std::sqrt(double(config.head_dim)) : 1.0;
    config.layers.push_back({LayerAttention::Rope::none, 0, by_layer ? scale / double(i + 1) : scale});
  }
}

void read(ConfigFields& fields, ModelConfig& config) {
  config.bos_token_id = 50256;
  config.eos_token_ids = {50256};
  config.tie_word_embeddings = true;
  config.activation = Activation::gelu_tanh;
  read_sizes_of_gpt2(fields, config);
  read_layers(fields, config);
  read_activation(fields, "activation_function", config);
  read_tokens(fields, config);
  config.residual_initializer_range = config.initializer_range / std::sqrt(2.0 * double(config.num_hidden_layers));
  fields.number("layer_norm_epsilon", config.rms_norm_eps);
  config.dropout = {0.1, 0.1, 0.1};
  read_dropout(fields, "embd_pdrop", config.dropout.embedding);
  read_dropout(fields, "attn_pdrop", config.dropout.attention);
  read_dropout(fields, "resid_pdrop", config.dropout.residual);
  fields.only("add_cross_attention", "false");
  config.norm = NormKind::layer;
  config.gated = false;
  config.learned_positions = config.qkv_bias = config.output_bias = config.mlp_bias = true;
}

DecoderNames names() {
  DecoderNames names;
  names.embedding = "transformer.wte";
  names.positions = "transformer.wpe";
  names.layers = "transformer.h";
  names.final_norm = "transformer.ln_f";
  names.before_attention = "ln_1";
  names.before_mlp = "ln_2";
  names.qkv = {"attn.c_attn"};
  names.attention_output = "attn.c_proj";
  names.mlp_input = {"mlp.c_fc"};
  names.mlp_output = "mlp.c_proj";
  names.input_first = true;
  return names;
}

GgufArchitecture gguf() {
  return {.name = "gpt2",
          .biases = GgufArchitecture::Biases::all,
          .activation = Activation::gelu_tanh,
          .norm = NormKind::layer,
          .gated = false,
          .learned_positions = true,
          .any_head_dim = false,
          .fields = {"n_positions", "n_embd", "n_layer", "n_inner", "n_head", "", "", "layer_norm_epsilon"},
          .fixed = R"({"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0})"};
}

}  // namespace

const Family& gpt2_family() {
  static const Family family{"gpt2", "GPT2LMHeadModel", read, names(), gguf()};
  return family;
}

}  // namespace zero
