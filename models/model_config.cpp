#include "models/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

struct Size {
  const char* name;
  std::int64_t ModelConfig::*member;
  std::int64_t largest;  // keeps every product of two sizes far inside int64
};
constexpr std::array<Size, 8> sizes{{
    {"vocab_size", &ModelConfig::vocab_size, 1 << 28},
    {"hidden_size", &ModelConfig::hidden_size, 1 << 24},
    {"intermediate_size", &ModelConfig::intermediate_size, 1 << 24},
    {"num_hidden_layers", &ModelConfig::num_hidden_layers, 1 << 12},
    {"num_attention_heads", &ModelConfig::num_attention_heads, 1 << 16},
    {"num_key_value_heads", &ModelConfig::num_key_value_heads, 1 << 16},
    {"head_dim", &ModelConfig::head_dim, 1 << 16},
    {"max_position_embeddings", &ModelConfig::max_position_embeddings, 1 << 28},
}};

[[noreturn]] void refuse(const std::string& path, const std::string& what) { throw InputError(text(path, ": ", what)); }

ModelConfig shape(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads,
                  std::int64_t intermediate) {
  ModelConfig config;
  config.hidden_size = hidden;
  config.num_hidden_layers = layers;
  config.num_attention_heads = heads;
  config.num_key_value_heads = kv_heads;
  config.intermediate_size = intermediate;
  config.bos_token_id = 1;
  config.eos_token_ids = {2};
  config.head_dim = hidden / heads;
  return config;
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::int64_t rotary_dim(const ModelConfig& config) {
  return std::int64_t(double(config.head_dim) * config.rotary_share);
}

void check_scaling(const std::optional<RopeScaling>& scaling, std::int64_t turned, double theta,
                   const std::string& path) {
  if (!scaling) return;
  if (std::holds_alternative<YarnScaling>(*scaling) && !(theta > 1))
    refuse(path, text("rope_theta = ", theta,
                      " must be above 1 for rope_type \"yarn\", whose ramp divides by its logarithm"));
  if (const auto* linear = std::get_if<LinearScaling>(&*scaling); linear && !(linear->factor >= 1))
    refuse(path, "rope_type \"linear\" needs factor >= 1");
  if (const auto* rope = std::get_if<Llama3Scaling>(&*scaling))
    if (!(rope->factor >= 1) || !(rope->low_freq_factor > 0) || !(rope->high_freq_factor > rope->low_freq_factor) ||
        rope->original_max_position_embeddings < 1)
      refuse(path, "rope_type \"llama3\" needs factor >= 1 and 0 < low_freq_factor < high_freq_factor");
  if (const auto* yarn = std::get_if<YarnScaling>(&*scaling))
    if (!(yarn->factor >= 1) || !(yarn->attention_factor > 0) || !std::isfinite(yarn->attention_factor) ||
        !(yarn->beta_slow > 0) || !(yarn->beta_fast >= yarn->beta_slow) || yarn->original_max_position_embeddings < 1)
      refuse(path, "rope_type \"yarn\" needs factor >= 1, attention_factor > 0 and 0 < beta_slow <= beta_fast");
  if (const auto* rope = std::get_if<LongRopeScaling>(&*scaling)) {
    for (const auto* factors : {&rope->short_factor, &rope->long_factor}) {
      if (std::int64_t(factors->size()) != turned / 2)
        refuse(path, text("rope_type \"longrope\" needs ", turned / 2,
                          " numbers in short_factor and in long_factor, one for each pair of dimensions that turns"));
      for (const double factor : *factors)
        if (!(factor > 0)) refuse(path, "short_factor and long_factor must be above 0");
    }
    if (!(rope->attention_factor > 0) || !std::isfinite(rope->attention_factor) ||
        rope->original_max_position_embeddings < 1)
      refuse(path, "rope_type \"longrope\" needs attention_factor > 0 and original_max_position_embeddings >= 1");
  }
}

}  // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names{"llama-tiny", "llama-15m", "llama-110m", "tinyllama-1.1b"};
  return names;
}

ModelConfig preset_config(const std::string& name) {
  if (name == "llama-tiny") {
    ModelConfig config = shape(64, 2, 4, 2, 176);
    config.vocab_size = 512;
    return config;
  }
  if (name == "llama-15m") {
    ModelConfig config = shape(288, 6, 6, 6, 768);
    config.tie_word_embeddings = true;
    return config;
  }
  if (name == "llama-110m") return shape(768, 12, 12, 4, 2048);
  if (name == "tinyllama-1.1b") return shape(2048, 22, 32, 4, 5632);
  throw InputError(text("model.preset \"", name, "\" is unknown; known are ", joined(preset_names()),
                        "; the path of a config.json is a preset, too"));
}

bool takes_trunks(const ModelConfig& config, std::int64_t seq_len) {
  const bool windows_cover = std::all_of(config.layers.begin(), config.layers.end(), [&](const LayerAttention& layer) {
    return layer.window <= 0 || layer.window >= 2 * seq_len;
  });
  return windows_cover && !is_beyond_old_context(config.rope_scaling, seq_len) &&
         !is_beyond_old_context(config.local_rope_scaling, seq_len);
}

void validate(const ModelConfig& config, const std::string& path) {
  for (const Size& field : sizes) {
    const std::int64_t value = config.*field.member;
    if (value < 1 || value > field.largest)
      refuse(path, text(field.name, " = ", value, " must be from 1 to ", field.largest));
  }
  if (!config.head_dim_given && config.hidden_size % config.num_attention_heads != 0)
    refuse(path, text("hidden_size = ", config.hidden_size, " is no multiple of num_attention_heads = ",
                      config.num_attention_heads, "; change one, or give head_dim"));
  if (config.head_dim % 2 != 0)
    refuse(path, text("head_dim = ", config.head_dim, " must be even, where heads are not rotated too"));
  if (config.num_attention_heads % config.num_key_value_heads != 0)
    refuse(path, text("num_attention_heads = ", config.num_attention_heads,
                      " is no multiple of num_key_value_heads = ", config.num_key_value_heads));
  if (!(config.rms_norm_eps > 0)) refuse(path, "rms_norm_eps must be above 0");
  if (!(config.rope_theta > 0)) refuse(path, "rope_theta must be above 0");
  if (!(config.initializer_range >= 0)) refuse(path, "initializer_range must not be negative");
  if (!(config.rotary_share > 0) || config.rotary_share > 1 || rotary_dim(config) % 2 != 0 || rotary_dim(config) == 0)
    refuse(path, "partial_rotary_factor must be above 0 and at most 1, and an even part of head_dim");
  if (!(config.local_rope_theta > 0)) refuse(path, "the local rope_theta must be above 0");
  check_scaling(config.rope_scaling, rotary_dim(config), config.rope_theta, path);
  check_scaling(config.local_rope_scaling, rotary_dim(config), config.local_rope_theta, path);
  if (!config.layers.empty() && std::int64_t(config.layers.size()) != config.num_hidden_layers)
    refuse(path,
           text("tells of ", config.layers.size(), " layers where num_hidden_layers = ", config.num_hidden_layers));
  for (const LayerAttention& layer : config.layers)
    if (layer.window < 0) refuse(path, "sliding_window must be above 0");
  std::vector<std::int64_t> special = config.eos_token_ids;
  if (config.bos_token_id) special.push_back(*config.bos_token_id);
  for (const std::int64_t id : special)
    if (id < 0 || id >= config.vocab_size)
      refuse(path, text("bos_token_id or eos_token_id = ", id, " is outside the vocabulary of ", config.vocab_size));
}

}  // namespace zero
