#include "models/families/llama_fields.h"

#include "base/error.h"

namespace zero {
namespace {

using nlohmann::ordered_json;

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return "silu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_pytorch_tanh";
    case Activation::relu:
      return "relu";
  }
  throw InternalError("unknown activation");
}

ordered_json json_of(const LinearScaling& scaling) { return {{"rope_type", "linear"}, {"factor", scaling.factor}}; }

ordered_json json_of(const Llama3Scaling& scaling) {
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_freq_factor},
          {"high_freq_factor", scaling.high_freq_factor},
          {"original_max_position_embeddings", scaling.original_max_position_embeddings}};
}

ordered_json json_of(const YarnScaling& scaling) {
  return {{"rope_type", "yarn"},
          {"factor", scaling.factor},
          {"attention_factor", scaling.attention_factor},
          {"beta_fast", scaling.beta_fast},
          {"beta_slow", scaling.beta_slow},
          {"truncate", scaling.truncate},
          {"original_max_position_embeddings", scaling.original_max_position_embeddings}};
}

ordered_json json_of(const LongRopeScaling& scaling) {
  return {{"rope_type", "longrope"},
          {"short_factor", scaling.short_factor},
          {"long_factor", scaling.long_factor},
          {"attention_factor", scaling.attention_factor},
          {"original_max_position_embeddings", scaling.original_max_position_embeddings}};
}

}  // namespace

void add_llama_fields(ordered_json& file, const ModelConfig& config) {
  file["attention_bias"] = config.qkv_bias;
  file["attention_dropout"] = config.dropout.attention;
  file["mlp_bias"] = config.mlp_bias;
  file["hidden_act"] = name_of(config.activation);
  file["vocab_size"] = config.vocab_size;
  file["hidden_size"] = config.hidden_size;
  file["intermediate_size"] = config.intermediate_size;
  file["num_hidden_layers"] = config.num_hidden_layers;
  file["num_attention_heads"] = config.num_attention_heads;
  file["num_key_value_heads"] = config.num_key_value_heads;
  file["head_dim"] = config.head_dim;
  file["max_position_embeddings"] = config.max_position_embeddings;
  file["rms_norm_eps"] = config.rms_norm_eps;
  file["rope_theta"] = config.rope_theta;
  file["initializer_range"] = config.initializer_range;
  file["rope_scaling"] = nullptr;
  if (config.rope_scaling)
    file["rope_scaling"] = std::visit([](const auto& scaling) { return json_of(scaling); }, *config.rope_scaling);
  file["tie_word_embeddings"] = config.tie_word_embeddings;
}

}  // namespace zero
