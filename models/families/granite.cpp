// Granite 3 (Granite Team 2024): Llama with factors of the embedding's rows, the scores, the additions to the residual
// stream and the logits (maximal update parametrization, Yang et al. 2022).
#include "models/families/config_fields.h"
#include "models/families/family.h"

namespace zero {
namespace {

double read_factor(ConfigFields& fields, const char* name) {
  double factor = 1;
  fields.number(name, factor);
  if (!(factor > 0)) fields.refuse(std::string(name) + " must be above 0");
  return factor;
}

void read(ConfigFields& fields, ModelConfig& config) {
  llama_family().read(fields, config);
  config.embedding_scale = read_factor(fields, "embedding_multiplier");
  config.residual_scale = read_factor(fields, "residual_multiplier");
  config.logits_scale = 1 / read_factor(fields, "logits_scaling");
  const LayerAttention layer{.scale = read_factor(fields, "attention_multiplier")};
  config.layers.assign(std::size_t(config.num_hidden_layers), layer);
}

GgufArchitecture gguf() {
  return {.name = "granite",
          .rotates_neighbours = true,
          .biases = GgufArchitecture::Biases::as_configured,
          .multipliers = true};
}

}  // namespace

const Family& granite_family() {
  static const Family family{"granite", "GraniteForCausalLM", read, {}, gguf()};
  return family;
}

}  // namespace zero
