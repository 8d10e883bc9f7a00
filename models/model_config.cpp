#include "models/model_config.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"

namespace zero {
namespace {

using nlohmann::json;

struct IntegerField {
  const char* name;
  std::int64_t ModelConfig::*member;
  std::int64_t largest;  // keeps every product of two sizes far inside int64
};
constexpr std::array<IntegerField, 8> integer_fields{{
    {"vocab_size", &ModelConfig::vocab_size, 1 << 28},
    {"hidden_size", &ModelConfig::hidden_size, 1 << 24},
    {"intermediate_size", &ModelConfig::intermediate_size, 1 << 24},
    {"num_hidden_layers", &ModelConfig::num_hidden_layers, 1 << 16},
    {"num_attention_heads", &ModelConfig::num_attention_heads, 1 << 16},
    {"num_key_value_heads", &ModelConfig::num_key_value_heads, 1 << 16},
    {"head_dim", &ModelConfig::head_dim, 1 << 16},
    {"max_position_embeddings", &ModelConfig::max_position_embeddings, 1 << 28},
}};

struct NumberField {
  const char* name;
  double ModelConfig::*member;
};
constexpr std::array<NumberField, 3> number_fields{{
    {"rms_norm_eps", &ModelConfig::rms_norm_eps},
    {"rope_theta", &ModelConfig::rope_theta},
    {"initializer_range", &ModelConfig::initializer_range},
}};

/// What a config.json may also say, as long as it says the one thing that the decoder does.
struct FixedField {
  const char* name;
  const char* accepted;  // JSON
};
constexpr std::array<FixedField, 6> fixed_fields{{
    {"attention_bias", "false"},
    {"mlp_bias", "false"},
    {"attention_dropout", "0.0"},
    {"partial_rotary_factor", "1.0"},
    {"quantization_config", "null"},
    {"is_encoder_decoder", "false"},
}};

[[noreturn]] void refuse(const std::string& path, const std::string& what) { throw InputError(text(path, ": ", what)); }

std::int64_t to_integer(const json& value, const std::string& name, const std::string& path) {
  if (value.is_number_unsigned() ? value.get<std::uint64_t>() >> 62 != 0 : !value.is_number_integer())
    refuse_json(path, name, "an integer", value);
  return value.get<std::int64_t>();
}

double to_number(const json& value, const std::string& name, const std::string& path) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse_json(path, name, "a number", value);
  return value.get<double>();
}

bool to_bool(const json& value, const std::string& name, const std::string& path) {
  if (!value.is_boolean()) refuse_json(path, name, "true or false", value);
  return value.get<bool>();
}

Llama3Scaling to_llama3(const json& rope, std::int64_t context, const std::string& path) {
  Llama3Scaling scaling;
  const auto number = [&](const char* name) {
    if (!rope.contains(name)) refuse(path, text("rope_type \"llama3\" needs ", name));
    return to_number(rope[name], name, path);
  };
  scaling.factor = number("factor");
  scaling.low_freq_factor = number("low_freq_factor");
  scaling.high_freq_factor = number("high_freq_factor");
  constexpr const char* original = "original_max_position_embeddings";
  scaling.original_max_position_embeddings =
      rope.contains(original) ? to_integer(rope[original], original, path) : context;
  return scaling;
}

/// The object of rope_parameters, or of its older spelling rope_scaling (with "type" for "rope_type" in the oldest
/// files).
void set_rope(ModelConfig& config, const json& rope, const std::string& path) {
  if (!rope.is_object()) refuse_json(path, "rope_parameters", "an object or null", rope);
  if (rope.contains("rope_theta")) config.rope_theta = to_number(rope["rope_theta"], "rope_theta", path);
  if (rope.contains("partial_rotary_factor") && rope["partial_rotary_factor"] != 1.0)
    refuse(path, "partial_rotary_factor other than 1 is not supported");
  std::string type = "default";
  for (const char* key : {"type", "rope_type"})
    if (rope.contains(key)) {
      if (!rope[key].is_string()) refuse_json(path, key, "a string", rope[key]);
      type = rope[key].get<std::string>();
    }
  config.rope_scaling.reset();
  if (type == "llama3")
    config.rope_scaling = to_llama3(rope, config.max_position_embeddings, path);
  else if (type != "default")
    refuse(path, text("rope_type \"", type, "\" is not supported; known are \"default\" and \"llama3\""));
}

void set_tokens(ModelConfig& config, const std::string& name, const json& value, const std::string& path) {
  std::vector<std::int64_t> ids;
  if (value.is_array())
    for (const auto& id : value) ids.push_back(to_integer(id, name, path));
  else if (!value.is_null())
    ids.push_back(to_integer(value, name, path));
  if (name == "eos_token_id")
    config.eos_token_ids = std::move(ids);
  else if (ids.size() > 1)
    refuse(path, "bos_token_id must be one integer or null");
  else
    config.bos_token_id = ids.empty() ? std::nullopt : std::optional(ids.front());
}

/// Sets one field; false when it is none of the decoder's. Null leaves sizes as they are, as in transformers.
bool set_field(ModelConfig& config, const std::string& name, const json& value, const std::string& path) {
  for (const auto& field : integer_fields)
    if (name == field.name) {
      if (!value.is_null()) config.*field.member = to_integer(value, name, path);
      if (name == "head_dim") config.head_dim_given = !value.is_null();
      return true;
    }
  for (const auto& field : number_fields)
    if (name == field.name) {
      config.*field.member = to_number(value, name, path);
      return true;
    }
  for (const auto& field : fixed_fields)
    if (name == field.name) {
      if (!value.is_null() && value != json::parse(field.accepted))
        refuse(path, text(name, " = ", value.dump().substr(0, 100), " is not supported; only ", field.accepted, " is"));
      return true;
    }
  if (name == "tie_word_embeddings") return config.tie_word_embeddings = to_bool(value, name, path), true;
  if (name == "bos_token_id" || name == "eos_token_id") return set_tokens(config, name, value, path), true;
  if (name == "rope_parameters" || name == "rope_scaling") {
    if (!value.is_null()) set_rope(config, value, path);
    return true;
  }
  if (name == "hidden_act") {
    if (value != "silu" && value != "swish")
      refuse(path, text("hidden_act ", value.dump(), " is not supported; only \"silu\" is"));
    return true;
  }
  return false;
}

void derive_head_dim(ModelConfig& config) {
  if (!config.head_dim_given && config.num_attention_heads > 0)
    config.head_dim = config.hidden_size / config.num_attention_heads;
}

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
  derive_head_dim(config);
  return config;
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
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
  throw InputError(text("model.preset \"", name, "\" is unknown; known are ", joined(preset_names())));
}

ModelConfig parse_model_config(const std::string& content, const std::string& path) {
  const json file = parse_json(content, path, {.bytes = 1 << 20, .depth = 32});
  if (!file.is_object()) refuse(path, "must be a JSON object");
  if (!file.contains("model_type") || file["model_type"] != "llama")
    refuse(path, text("model_type ",
                      file.contains("model_type") ? file["model_type"].dump().substr(0, 100) : "is missing and",
                      " is not supported; only \"llama\" is"));
  for (const char* name :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"})
    if (!file.contains(name) || file[name].is_null()) refuse(path, text(name, " is missing"));

  ModelConfig config;
  config.model_type = file["model_type"];
  config.rms_norm_eps = 1e-6;  // what transformers takes where a file is silent
  config.bos_token_id = 1;
  config.eos_token_ids = {2};
  const auto given = [&file](const char* name) { return file.contains(name) && !file[name].is_null(); };
  for (const char* name : {"rope_parameters", "rope_scaling"})
    if (given(name) && !file[name].is_object()) refuse_json(path, name, "an object or null", file[name]);
  if (given("rope_parameters") && given("rope_scaling") && file["rope_parameters"] != file["rope_scaling"])
    refuse(path, "rope_parameters and rope_scaling (its older name) contradict each other; remove one");
  if (given("rope_theta") && given("rope_parameters") &&
      file["rope_parameters"].value("rope_theta", file["rope_theta"]) != file["rope_theta"])
    refuse(path, "rope_theta stands twice with two values; remove one");
  // llama3 scaling falls back to the context, which must be known before it
  if (given("max_position_embeddings"))
    set_field(config, "max_position_embeddings", file["max_position_embeddings"], path);
  for (const auto& [name, value] : file.items())
    if (name != "rope_theta" || !value.is_null()) set_field(config, name, value, path);
  if (!given("num_key_value_heads")) config.num_key_value_heads = config.num_attention_heads;
  derive_head_dim(config);
  validate(config, path);
  return config;
}

std::string format_model_config(const ModelConfig& config, const std::string& torch_dtype) {
  nlohmann::ordered_json file;
  file["architectures"] = {"LlamaForCausalLM"};
  file["model_type"] = config.model_type;
  file["attention_bias"] = false;
  file["attention_dropout"] = 0.0;
  file["mlp_bias"] = false;
  file["hidden_act"] = "silu";
  for (const auto& field : integer_fields) file[field.name] = config.*field.member;
  for (const auto& field : number_fields) file[field.name] = config.*field.member;
  file["rope_scaling"] = nullptr;
  if (const auto& rope = config.rope_scaling)
    file["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", rope->factor},
                            {"low_freq_factor", rope->low_freq_factor},
                            {"high_freq_factor", rope->high_freq_factor},
                            {"original_max_position_embeddings", rope->original_max_position_embeddings}};
  file["tie_word_embeddings"] = config.tie_word_embeddings;
  file["bos_token_id"] = nullptr;
  if (config.bos_token_id) file["bos_token_id"] = *config.bos_token_id;
  file["eos_token_id"] = nullptr;
  if (config.eos_token_ids.size() == 1) file["eos_token_id"] = config.eos_token_ids.front();
  if (config.eos_token_ids.size() > 1) file["eos_token_id"] = config.eos_token_ids;
  file["torch_dtype"] = torch_dtype;
  file["use_cache"] = true;
  return file.dump(2) + "\n";
}

void set_model_field(ModelConfig& config, const std::string& name, const std::string& json_value) {
  const std::string where = "model." + name;
  if (!set_field(config, name, parse_json(json_value, where, {.bytes = 1 << 16, .depth = 8}), where))
    throw InputError(text(where, " is no field of the decoder's config.json"));
  derive_head_dim(config);
}

void validate(const ModelConfig& config, const std::string& path) {
  for (const auto& field : integer_fields) {
    const std::int64_t value = config.*field.member;
    if (value < 1 || value > field.largest)
      refuse(path, text(field.name, " = ", value, " must be from 1 to ", field.largest));
  }
  if (!config.head_dim_given && config.hidden_size % config.num_attention_heads != 0)
    refuse(path, text("hidden_size = ", config.hidden_size, " is no multiple of num_attention_heads = ",
                      config.num_attention_heads, "; change one, or give head_dim"));
  if (config.head_dim % 2 != 0)
    refuse(path, text("head_dim = ", config.head_dim, " must be even for the rotary embedding"));
  if (config.num_attention_heads % config.num_key_value_heads != 0)
    refuse(path, text("num_attention_heads = ", config.num_attention_heads,
                      " is no multiple of num_key_value_heads = ", config.num_key_value_heads));
  if (!(config.rms_norm_eps > 0)) refuse(path, "rms_norm_eps must be above 0");
  if (!(config.rope_theta > 0)) refuse(path, "rope_theta must be above 0");
  if (!(config.initializer_range >= 0)) refuse(path, "initializer_range must not be negative");
  if (const auto& rope = config.rope_scaling)
    if (!(rope->factor >= 1) || !(rope->low_freq_factor > 0) || !(rope->high_freq_factor > rope->low_freq_factor) ||
        rope->original_max_position_embeddings < 1)
      refuse(path, "rope_type \"llama3\" needs factor >= 1 and 0 < low_freq_factor < high_freq_factor");
  std::vector<std::int64_t> special = config.eos_token_ids;
  if (config.bos_token_id) special.push_back(*config.bos_token_id);
  for (const std::int64_t id : special)
    if (id < 0 || id >= config.vocab_size)
      refuse(path, text("bos_token_id or eos_token_id = ", id, " is outside the vocabulary of ", config.vocab_size));
}

}  // namespace zero
