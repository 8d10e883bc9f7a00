#include "models/families/decoder_fields.h"

#include <map>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"

namespace zero {
namespace {

using nlohmann::json;

std::vector<std::int64_t> ids_of(const json& value, const std::string& name, const std::string& path) {
  std::vector<std::int64_t> ids;
  const auto add = [&](const json& id) {
    if (!id.is_number_integer()) refuse_json(path, name, "an integer, a list of integers or null", value);
    ids.push_back(id.get<std::int64_t>());
  };
  if (value.is_array())
    for (const json& id : value) add(id);
  else
    add(value);
  return ids;
}

/// Ids of a field; the defaults if it is absent.
std::vector<std::int64_t> tokens_of(ConfigFields& fields, const std::string& name, bool absent,
                                    const std::vector<std::int64_t>& defaults, std::int64_t vocabulary) {
  const json* value = fields.find(name);
  std::vector<std::int64_t> ids;
  if (value) ids = ids_of(*value, name, fields.path());
  if (absent) ids = defaults;
  const bool nobodys = ids == defaults && ids.size() == 1 && ids.front() >= vocabulary && vocabulary > 0;
  return nobodys ? std::vector<std::int64_t>{} : ids;
}

}  // namespace

void read_tokens(ConfigFields& fields, ModelConfig& config) {
  fields.flag("tie_word_embeddings", config.tie_word_embeddings);
  fields.number("initializer_range", config.initializer_range);
  std::vector<std::int64_t> begin;
  if (config.bos_token_id) begin = {*config.bos_token_id};
  begin = tokens_of(fields, "bos_token_id", fields.is_absent("bos_token_id"), begin, config.vocab_size);
  if (begin.size() > 1) fields.refuse("bos_token_id must be one integer or null");
  config.bos_token_id = begin.empty() ? std::nullopt : std::optional(begin.front());
  config.eos_token_ids =
      tokens_of(fields, "eos_token_id", fields.is_absent("eos_token_id"), config.eos_token_ids, config.vocab_size);
}

void read_activation(ConfigFields& fields, const std::string& name, ModelConfig& config) {
  static const std::map<std::string, Activation> known{{"silu", Activation::silu},
                                                       {"swish", Activation::silu},
                                                       {"gelu", Activation::gelu},
                                                       {"gelu_new", Activation::gelu_tanh},
                                                       {"gelu_fast", Activation::gelu_tanh},
                                                       {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                       {"relu", Activation::relu}};
  if (fields.is_absent(name)) return;
  if (fields.is_null(name)) fields.refuse(name + " is null, and transformers knows no such activation: name one");
  std::string word;
  fields.word(name, word);
  const auto found = known.find(word);
  if (found == known.end())
    fields.refuse(
        text(name, " \"", word, "\" is not supported; known are silu, gelu, gelu_new, gelu_pytorch_tanh, relu"));
  config.activation = found->second;
}

void read_dropout(ConfigFields& fields, const std::string& name, double& share) {
  fields.number(name, share);
  if (!(share >= 0 && share < 1)) fields.refuse(text(name, " = ", share, " must be at least 0 and below 1"));
}

void read_attention_bias(ConfigFields& fields, ModelConfig& config) {
  fields.flag("attention_bias", config.qkv_bias);
  config.output_bias = config.qkv_bias;
}

void read_layer_count(ConfigFields& fields, const std::string& name, ModelConfig& config) {
  constexpr std::int64_t most = 1 << 12;
  fields.required(name, config.num_hidden_layers);
  if (config.num_hidden_layers < 1 || config.num_hidden_layers > most)
    fields.refuse(text(name, " = ", config.num_hidden_layers, " must be from 1 to ", most));
}

void read_sizes(ConfigFields& fields, ModelConfig& config, const std::string& eps) {
  fields.required("vocab_size", config.vocab_size);
  fields.required("hidden_size", config.hidden_size);
  fields.required("intermediate_size", config.intermediate_size);
  read_layer_count(fields, "num_hidden_layers", config);
  fields.required("num_attention_heads", config.num_attention_heads);
  if (config.num_key_value_heads == 0 || fields.is_null("num_key_value_heads"))
    config.num_key_value_heads = config.num_attention_heads;
  fields.integer("num_key_value_heads", config.num_key_value_heads);
  fields.integer("max_position_embeddings", config.max_position_embeddings);
  config.head_dim_given = fields.find("head_dim") || config.head_dim > 0;
  if (config.head_dim == 0 && config.num_attention_heads > 0)
    config.head_dim = config.hidden_size / config.num_attention_heads;
  fields.integer("head_dim", config.head_dim);
  fields.number(eps, config.rms_norm_eps);
  read_dropout(fields, "attention_dropout", config.dropout.attention);
  read_tokens(fields, config);
}

void read_decoder(ConfigFields& fields, ModelConfig& config, const RopeRules& rules, const std::string& eps) {
  read_sizes(fields, config, eps);
  read_activation(fields, "hidden_act", config);
  RopeRules all = rules;
  all.max_position_embeddings = config.max_position_embeddings;
  fields.integer("original_max_position_embeddings", all.original_max_position_embeddings);
  RopeFields found = read_rope(fields, {config.rope_theta, {}}, all);
  config.rope_theta = found.theta;
  config.rope_scaling = std::move(found.scaling);
  config.rotary_share = found.share;
  if (found.share != 1 && !rules.partial) fields.refuse("partial_rotary_factor other than 1 is not supported");
}

std::optional<std::vector<bool>> read_layer_types(ConfigFields& fields, const ModelConfig& config) {
  const json* types = fields.find("layer_types");
  if (!types) return std::nullopt;
  if (!types->is_array() || std::int64_t(types->size()) != config.num_hidden_layers)
    fields.refuse(text("layer_types must be a list of num_hidden_layers = ", config.num_hidden_layers, " names"));
  std::vector<bool> slides;
  for (const json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention")
      fields.refuse(text("layer_types: ", type.dump().substr(0, 100),
                         " is not supported; known are \"full_attention\" and \"sliding_attention\""));
    slides.push_back(type == "sliding_attention");
  }
  return slides;
}

std::optional<std::int64_t> read_window(ConfigFields& fields, std::optional<std::int64_t> otherwise) {
  if (fields.is_absent("sliding_window")) return otherwise;
  if (!fields.find("sliding_window")) return std::nullopt;
  std::int64_t window = 0;
  fields.integer("sliding_window", window);
  if (window < 1) fields.refuse(text("sliding_window = ", window, " must be at least 1, or null"));
  return window;
}

void set_windows(const ConfigFields& fields, ModelConfig& config, const std::vector<bool>& slides,
                 std::optional<std::int64_t> window) {
  config.layers.resize(slides.size());
  for (std::size_t i = 0; i < slides.size(); ++i) {
    if (slides[i] && !window)
      fields.refuse(text("layer ", i, " has sliding attention, but there is no sliding_window for it"));
    config.layers[i].window = slides[i] ? *window : 0;
  }
}

void read_qwen_windows(ConfigFields& fields, ModelConfig& config) {
  bool use = false;
  std::int64_t first = 28;
  fields.flag("use_sliding_window", use);
  fields.integer("max_window_layers", first);
  const std::optional<std::int64_t> given = read_window(fields, 4096), window = use ? given : std::nullopt;
  std::vector<bool> slides;
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) slides.push_back(window && i >= first);
  set_windows(fields, config, read_layer_types(fields, config).value_or(slides), window);
}

}  // namespace zero
