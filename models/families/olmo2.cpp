// OLMo 2 (OLMo Team 2024): Llama with norms after attention and MLP, and norms over all queries and all keys.
#include "models/families/decoder_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

void read(ConfigFields& fields, ModelConfig& config) {
  config.rms_norm_eps = 1e-5;
  config.eos_token_ids = {50279};
  read_decoder(fields, config);
  read_attention_bias(fields, config);
  config.head_norm = HeadNorm::all_heads;
}

DecoderNames names() {
  DecoderNames names;
  names.before_attention = names.before_mlp = "";
  names.after_attention = "post_attention_layernorm";
  names.after_mlp = "post_feedforward_layernorm";
  return names;
}

}  // namespace

const Family& olmo2_family() {
  static const Family family{
      "olmo2",
      "Olmo2ForCausalLM",
      read,
      names(),
      {.name = "olmo2", .head_norm = HeadNorm::all_heads, .any_head_dim = false, .needs_head = true}};
  return family;
}

}  // namespace zero
