#include "models/formats/gguf/gguf_hyperparameters.h"

#include <algorithm>

#include "models/formats/gguf/gguf_check.h"
#include "models/formats/gguf/gguf_rope.h"

namespace zero {
namespace {

void add_windows(GgufMetadata& metadata, const std::string& prefix, const ModelConfig& config) {
  std::int64_t window = 0;
  for (const LayerAttention& layer : config.layers) window = std::max(window, layer.window);
  metadata.add_uint32(prefix + "attention.sliding_window", window);
  metadata.add_uint32(prefix + "attention.sliding_window_pattern", window_pattern(config).value());
  metadata.add_float32(prefix + "rope.freq_base_swa", config.local_rope_theta);
}

void add_multipliers(GgufMetadata& metadata, const std::string& prefix, const ModelConfig& config) {
  metadata.add_float32(prefix + "embedding_scale", config.embedding_scale);
  metadata.add_float32(prefix + "residual_scale", config.residual_scale);
  metadata.add_float32(prefix + "attention.scale", config.layer(0).scale);
  metadata.add_float32(prefix + "logit_scale", 1 / config.logits_scale);
}

}  // namespace

void add_hyperparameters(GgufMetadata& metadata, const ModelConfig& config) {
  const GgufArchitecture& architecture = gguf_family(config.model_type).gguf;
  const std::string prefix = architecture.name + ".";
  metadata.add_uint32(prefix + "context_length", config.max_position_embeddings);
  metadata.add_uint32(prefix + "embedding_length", config.hidden_size);
  metadata.add_uint32(prefix + "block_count", config.num_hidden_layers);
  metadata.add_uint32(prefix + "feed_forward_length", config.intermediate_size);
  metadata.add_uint32(prefix + "attention.head_count", config.num_attention_heads);
  metadata.add_uint32(prefix + "attention.head_count_kv", config.num_key_value_heads);
  metadata.add_uint32(prefix + "attention.key_length", config.head_dim);
  metadata.add_uint32(prefix + "attention.value_length", config.head_dim);
  const bool layer_norm = config.norm == NormKind::layer;
  metadata.add_float32(prefix + (layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
                       config.rms_norm_eps);
  metadata.add_uint32(prefix + "vocab_size", config.vocab_size);
  if (architecture.multipliers) add_multipliers(metadata, prefix, config);
  if (config.learned_positions) return;
  metadata.add_uint32(prefix + "rope.dimension_count", std::int64_t(double(config.head_dim) * config.rotary_share));
  metadata.add_float32(prefix + "rope.freq_base", config.rope_theta);
  add_rope_scaling(metadata, prefix, config);
  if (architecture.local_layers) add_windows(metadata, prefix, config);
}

}  // namespace zero
