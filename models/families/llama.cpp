// Llama 2 and 3 (Touvron et al. 2023, Dubey et al. 2024), and models of the same architecture.
#include "models/families/decoder_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

void read(ConfigFields& fields, ModelConfig& config) {
  config.rms_norm_eps = 1e-6;
  config.bos_token_id = 1;
  config.eos_token_ids = {2};
  read_decoder(fields, config);
  read_attention_bias(fields, config);
  fields.flag("mlp_bias", config.mlp_bias);
}

GgufArchitecture gguf() {
  return {.name = "llama",
          .rotates_neighbours = true,
          .biases = GgufArchitecture::Biases::as_configured,
          .frequency_factors = true};
}

}  // namespace

const Family& llama_family() {
  static const Family family{"llama", "LlamaForCausalLM", read, {}, gguf()};
  return family;
}

}  // namespace zero
