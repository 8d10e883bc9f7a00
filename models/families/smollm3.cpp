// SmolLM3 (Bakouch et al. 2025): Llama with every fourth layer without positions (NoPE, Yang et al. 2025).
#include "models/families/decoder_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

/// no_rope_layers has 1 for a layer with rope and 0 for one without.
std::vector<bool> read_turning(ConfigFields& fields, const ModelConfig& config) {
  std::int64_t interval = 4;
  fields.integer("no_rope_layer_interval", interval);
  if (interval < 1) fields.refuse("no_rope_layer_interval must be at least 1");
  std::vector<bool> turns;
  const nlohmann::json* given = fields.find("no_rope_layers");
  if (given && (!given->is_array() || std::int64_t(given->size()) != config.num_hidden_layers))
    fields.refuse("no_rope_layers must be a list of a number for each layer");
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    if (given && !(*given)[std::size_t(i)].is_number_integer())
      fields.refuse("no_rope_layers must be a list of 0 and 1");
    const bool from_list = given && (*given)[std::size_t(i)] != 0;
    turns.push_back(given ? from_list : (i + 1) % interval != 0);
  }
  return turns;
}

void read(ConfigFields& fields, ModelConfig& config) {
  config.max_position_embeddings = 32768;
  config.num_key_value_heads = 4;
  config.rms_norm_eps = 1e-6;
  config.rope_theta = 2e6;
  config.tie_word_embeddings = true;
  config.bos_token_id = 128000;
  config.eos_token_ids = {128001};
  read_decoder(fields, config);
  read_attention_bias(fields, config);
  fields.flag("mlp_bias", config.mlp_bias);
  bool use = false;
  fields.flag("use_sliding_window", use);
  const auto window = read_window(fields, std::nullopt);
  const std::vector<bool> turns = read_turning(fields, config);
  std::vector<bool> slides;
  for (const bool turn : turns) slides.push_back(use && window && !turn);
  set_windows(fields, config, read_layer_types(fields, config).value_or(slides), window);
  for (std::size_t i = 0; i < turns.size(); ++i)
    if (!turns[i]) config.layers[i].rope = LayerAttention::Rope::none;
}

GgufArchitecture gguf() {
  return {.name = "smollm3",
          .rotates_neighbours = true,
          .biases = GgufArchitecture::Biases::as_configured,
          .plain_step = 4};
}

}  // namespace

const Family& smollm3_family() {
  static const Family family{"smollm3", "SmolLM3ForCausalLM", read, {}, gguf()};
  return family;
}

}  // namespace zero
