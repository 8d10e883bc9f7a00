// Qwen 2 and 2.5 (Yang et al. 2024): Llama with biases for q, k and v. A file may set windows in upper layers.
#include "models/families/decoder_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

void read(ConfigFields& fields, ModelConfig& config) {
  config.max_position_embeddings = 32768;
  config.num_key_value_heads = 32;
  config.rms_norm_eps = 1e-6;
  read_decoder(fields, config);
  read_qwen_windows(fields, config);
  config.qkv_bias = true;
}

GgufArchitecture gguf() { return {.name = "qwen2", .biases = GgufArchitecture::Biases::qkv, .any_head_dim = false}; }

}  // namespace

const Family& qwen2_family() {
  static const Family family{"qwen2", "Qwen2ForCausalLM", read, {}, gguf()};
  return family;
}

}  // namespace zero
