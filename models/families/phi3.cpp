// Phi-3 and Phi-4-mini (Abdin et al. 2024): Llama with fused projections, "longrope" and partial rotation of heads.
#include "models/families/decoder_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

void read(ConfigFields& fields, ModelConfig& config) {
  config.max_position_embeddings = 4096;
  config.rms_norm_eps = 1e-5;
  config.bos_token_id = 1;
  config.eos_token_ids = {32000};
  read_decoder(fields, config,
               {.original_max_position_embeddings = 4096, .old_names_of_longrope = true, .partial = true});
  read_dropout(fields, "resid_pdrop", config.dropout.residual);
  double unused = 0;
  read_dropout(fields, "embd_pdrop", unused);  // transformers' class does not apply it
  const auto window = read_window(fields, std::nullopt);
  set_windows(fields, config, std::vector<bool>(std::size_t(config.num_hidden_layers), window.has_value()), window);
}

DecoderNames names() {
  DecoderNames names;
  names.qkv = {"self_attn.qkv_proj"};
  names.mlp_input = {"mlp.gate_up_proj"};
  return names;
}

GgufArchitecture gguf() {
  return {.name = "phi3", .any_head_dim = false, .long_factors = true, .partial_rotary = true, .told_window = true};
}

}  // namespace

const Family& phi3_family() {
  static const Family family{"phi3", "Phi3ForCausalLM", read, names(), gguf()};
  return family;
}

}  // namespace zero
