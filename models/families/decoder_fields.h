#pragma once
// Fields that the config.json of several families have alike.
#include <optional>
#include <string>

#include "models/families/config_fields.h"
#include "models/families/rope_fields.h"
#include "models/model_config.h"

namespace zero {

/// Sizes, norms, activation, positions and tokens by Llama's names: all of its config.json but biases. `config` holds the
/// family's defaults; a head_dim of its own stays when the file is silent. `eps` is the field with the norms' epsilon, since
/// families with layer norms name it otherwise.
void read_decoder(ConfigFields& fields, ModelConfig& config, const RopeRules& rules = {},
                  const std::string& eps = "rms_norm_eps");

/// num_hidden_layers by the family's name for it, in a range whose lists of layers fit anywhere.
void read_layer_count(ConfigFields& fields, const std::string& name, ModelConfig& config);

/// The part of it without activation and rope.
void read_sizes(ConfigFields& fields, ModelConfig& config, const std::string& eps = "rms_norm_eps");

/// The activation that a field names.
void read_activation(ConfigFields& fields, const std::string& name, ModelConfig& config);

/// tie_word_embeddings, initializer_range, bos_token_id and eos_token_id. Ids that are the family's own defaults and lie
/// outside the vocabulary were written by nobody: transformers adds them to every file.
void read_tokens(ConfigFields& fields, ModelConfig& config);

/// Shares of dropout by their fields, which all have the same default, into ModelConfig::dropout. InputError for one that
/// is no share.
void read_dropout(ConfigFields& fields, ModelConfig& config, std::initializer_list<const char*> names,
                  double otherwise = 0);

/// attention_bias: of q, k, v and the output.
void read_attention_bias(ConfigFields& fields, ModelConfig& config);

/// "full_attention" or "sliding_attention" for each layer; none where the file does not say.
std::optional<std::vector<bool>> read_layer_types(ConfigFields& fields, const ModelConfig& config);

/// sliding_window: null is none, a silent file has the family's own.
std::optional<std::int64_t> read_window(ConfigFields& fields, std::optional<std::int64_t> otherwise);

/// The window for the layers that slide. InputError where one slides and there is no window.
void set_windows(const ConfigFields& fields, ModelConfig& config, const std::vector<bool>& slides,
                 std::optional<std::int64_t> window);

/// use_sliding_window, sliding_window, max_window_layers and layer_types as Qwen has them.
void read_qwen_windows(ConfigFields& fields, ModelConfig& config);

}  // namespace zero
