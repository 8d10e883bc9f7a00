#pragma once
// Fields that the config.json of several families share.
#include <optional>
#include <string>

#include "models/families/config_fields.h"
#include "models/families/rope_fields.h"
#include "models/model_config.h"

namespace zero {

/// Reads sizes, norms, activation, positions and tokens by Llama's names, which is all of Llama's config.json except
/// biases. `config` holds the family's defaults; its head_dim is kept if the file has none. `eps` is the field with the
/// norms' epsilon, since families with layer norms name it differently.
void read_decoder(ConfigFields& fields, ModelConfig& config, const RopeRules& rules = {},
                  const std::string& eps = "rms_norm_eps");

/// Reads num_hidden_layers by the family's name for it. Its range is limited, so that lists of layers fit into memory.
void read_layer_count(ConfigFields& fields, const std::string& name, ModelConfig& config);

/// Like read_decoder(), without activation and rope.
void read_sizes(ConfigFields& fields, ModelConfig& config, const std::string& eps = "rms_norm_eps");

/// Reads the activation that a field names.
void read_activation(ConfigFields& fields, const std::string& name, ModelConfig& config);

/// Reads tie_word_embeddings, initializer_range, bos_token_id and eos_token_id. Ids that equal the family's defaults
/// and lie outside the vocabulary are ignored: transformers adds them to every file.
void read_tokens(ConfigFields& fields, ModelConfig& config);

/// Reads a share of ModelConfig::dropout. Throws InputError unless it is at least 0 and below 1.
void read_dropout(ConfigFields& fields, const std::string& name, double& share);

/// Reads attention_bias, which covers q, k, v and the output.
void read_attention_bias(ConfigFields& fields, ModelConfig& config);

/// Reads "full_attention" or "sliding_attention" for each layer; true means sliding. Returns nothing if the file does
/// not say.
std::optional<std::vector<bool>> read_layer_types(ConfigFields& fields, const ModelConfig& config);

/// Reads sliding_window. Null means no window. If the field is absent, `otherwise` applies.
std::optional<std::int64_t> read_window(ConfigFields& fields, std::optional<std::int64_t> otherwise);

/// Sets the window of the sliding layers. Throws InputError if a layer slides but there is no window.
void set_windows(const ConfigFields& fields, ModelConfig& config, const std::vector<bool>& slides,
                 std::optional<std::int64_t> window);

/// Reads use_sliding_window, sliding_window, max_window_layers and layer_types, as Qwen defines them.
void read_qwen_windows(ConfigFields& fields, ModelConfig& config);

}  // namespace zero
