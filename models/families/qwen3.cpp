// Qwen 3 (Yang et al. 2025): Qwen 2 without biases, with norms of each query and key head.
#include "models/families/decoder_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

void read(ConfigFields& fields, ModelConfig& config) {
  config.max_position_embeddings = 32768;
  config.num_key_value_heads = 32;
  config.head_dim = 128;
  config.rms_norm_eps = 1e-6;
  read_decoder(fields, config);
  read_attention_bias(fields, config);
  read_qwen_windows(fields, config);
  config.head_norm = HeadNorm::each_head;
}

}  // namespace

const Family& qwen3_family() {
  static const Family family{
      "qwen3", "Qwen3ForCausalLM", read, {}, {.name = "qwen3", .head_norm = HeadNorm::each_head}};
  return family;
}

}  // namespace zero
