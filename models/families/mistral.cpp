// Mistral (Jiang et al. 2023): Llama with a window in all layers, or in none.
#include "models/families/decoder_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

void read(ConfigFields& fields, ModelConfig& config) {
  config.max_position_embeddings = 131072;
  config.num_key_value_heads = 8;
  config.rms_norm_eps = 1e-6;
  config.bos_token_id = 1;
  config.eos_token_ids = {2};
  read_decoder(fields, config);
  const auto window = read_window(fields, 4096);
  const std::vector<bool> slides(std::size_t(config.num_hidden_layers), window.has_value());
  if (read_layer_types(fields, config).value_or(slides) != slides)
    fields.refuse("layer_types: sliding_window alone decides for model_type \"mistral\"; remove one of the two");
  set_windows(fields, config, slides, window);
}

/// llama.cpp has no windows for it, so a model's context must not exceed its window.
GgufArchitecture gguf() { return {.name = "llama", .rotates_neighbours = true, .frequency_factors = true}; }

}  // namespace

const Family& mistral_family() {
  static const Family family{"mistral", "MistralForCausalLM", read, {}, gguf()};
  return family;
}

}  // namespace zero
