// StarCoder2 (Lozhkov et al. 2024): layer norms, biases of all projections, an MLP without a gate, and a window in all
// layers or in none.
#include "models/families/decoder_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

void read(ConfigFields& fields, ModelConfig& config) {
  config.max_position_embeddings = 4096;
  config.num_key_value_heads = 2;
  config.rms_norm_eps = 1e-5;
  config.initializer_range = 0.018042;
  config.bos_token_id = 50256;
  config.eos_token_ids = {50256};
  config.tie_word_embeddings = true;
  config.activation = Activation::gelu_tanh;
  read_decoder(fields, config, {}, "norm_epsilon");
  read_dropout(fields, "embedding_dropout", config.dropout.embedding);
  read_dropout(fields, "residual_dropout", config.dropout.residual);
  const auto window = read_window(fields, std::nullopt);
  set_windows(fields, config, std::vector<bool>(std::size_t(config.num_hidden_layers), window.has_value()), window);
  bool biases = true;
  fields.flag("use_bias", biases);
  config.qkv_bias = config.output_bias = config.mlp_bias = biases;
  config.norm = NormKind::layer;
  config.gated = false;
}

DecoderNames names() {
  DecoderNames names;
  names.mlp_input = {"mlp.c_fc"};
  names.mlp_output = "mlp.c_proj";
  return names;
}

/// llama.cpp has no windows for it, so a model's context must not exceed its window.
GgufArchitecture gguf() {
  return {.name = "starcoder2",
          .biases = GgufArchitecture::Biases::all,
          .activation = Activation::gelu_tanh,
          .norm = NormKind::layer,
          .gated = false,
          .fields = {.eps = "norm_epsilon"}};
}

}  // namespace

const Family& starcoder2_family() {
  static const Family family{"starcoder2", "Starcoder2ForCausalLM", read, names(), gguf()};
  return family;
}

}  // namespace zero
