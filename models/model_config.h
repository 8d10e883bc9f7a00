#pragma once
// ModelConfig: the fields of a Llama config.json that the decoder is built from, and the presets. No LibTorch.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zero {

/// rope_type "llama3" of transformers: wavelengths beyond the old context are stretched, those between are blended.
struct Llama3Scaling {
  double factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  std::int64_t original_max_position_embeddings = 8192;
};

struct ModelConfig {
  std::string model_type = "llama";  // the family (models/families)
  std::int64_t vocab_size = 32000;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;
  std::optional<Llama3Scaling> rope_scaling;
  bool tie_word_embeddings = false;
  double initializer_range = 0.02;
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;
  // else head_dim is hidden_size / num_attention_heads and follows them in set_model_field
  bool head_dim_given = false;
};

/// "llama-tiny", "llama-15m", "llama-110m", "tinyllama-1.1b". Throws InputError that lists the presets.
ModelConfig preset_config(const std::string& name);
const std::vector<std::string>& preset_names();

/// Reads config.json text; `path` is for messages. Reads rope_theta and rope_scaling as well as rope_parameters, fills
/// head_dim and num_key_value_heads when absent, and refuses what the decoder does not do (attention or MLP bias,
/// another activation, another rope_type, another model_type) by InputError.
ModelConfig parse_model_config(const std::string& json, const std::string& path);

/// config.json text that transformers' LlamaConfig opens. torch_dtype is "float32", "bfloat16" or "float16".
std::string format_model_config(const ModelConfig& config, const std::string& torch_dtype);

/// Sets one field by its config.json name from a JSON value, for [model] keys beside a preset. InputError when unknown.
void set_model_field(ModelConfig& config, const std::string& name, const std::string& json_value);

/// Throws InputError where the fields contradict each other (heads that do not divide, odd head_dim, sizes below 1).
void validate(const ModelConfig& config, const std::string& path);

}  // namespace zero
