#include "models/families/config_fields.h"

#include <cmath>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"

namespace zero {
namespace {

using nlohmann::json;

/// Fields of transformers' decoders that change a model's computation. Families read those that they support.
constexpr const char* deciding[] = {"add_cross_attention",
                                    "alibi",
                                    "attention_bias",
                                    "attention_chunk_size",
                                    "attention_dropout",
                                    "attention_multiplier",
                                    "attention_value_scale",
                                    "attn_logit_softcapping",
                                    "attn_pdrop",
                                    "clip_qkv",
                                    "cross_layer_sharing",
                                    "dual_chunk_attention_config",
                                    "embd_pdrop",
                                    "embedding_dropout",
                                    "embedding_multiplier",
                                    "final_logit_softcapping",
                                    "hidden_dropout",
                                    "hidden_dropout_prob",
                                    "is_encoder_decoder",
                                    "kv_lora_rank",
                                    "layer_types",
                                    "logit_scale",
                                    "logits_scaling",
                                    "lm_head_multiplier",
                                    "mlp_bias",
                                    "mlp_multipliers",
                                    "moe_intermediate_size",
                                    "moe_num_experts",
                                    "n_routed_experts",
                                    "no_rope_layers",
                                    "num_experts",
                                    "num_local_experts",
                                    "parallel_attn",
                                    "partial_rotary_factor",
                                    "q_lora_rank",
                                    "qk_layernorm",
                                    "qkv_bias",
                                    "quantization_config",
                                    "query_pre_attn_scalar",
                                    "residual_multiplier",
                                    "resid_pdrop",
                                    "rope_local_base_freq",
                                    "rope_ratio",
                                    "rotary_pct",
                                    "scale_attn_by_inverse_layer_idx",
                                    "scale_depth",
                                    "scale_emb",
                                    "sliding_window",
                                    "sliding_window_pattern",
                                    "softcap",
                                    "use_bias",
                                    "use_bidirectional_attention",
                                    "use_parallel_residual",
                                    "use_qk_norm",
                                    "use_qkv_bias",
                                    "use_sliding_window",
                                    "vision_config"};

bool says_nothing(const std::string& name, const json& value) {
  if (value.is_null() || value == false || value == 0) return true;
  if (value == 1)
    for (const char* factor : {"multipl", "scal", "factor", "pct", "ratio", "experts"})
      if (name.find(factor) != name.npos) return true;
  if (value.is_array()) {
    for (const json& item : value)
      if (item != "full_attention") return false;
    return true;
  }
  return value.is_object() && value.empty();
}

std::string shortened(const json& value) { return value.dump().substr(0, 100); }

}  // namespace

void ConfigFields::refuse(const std::string& what) const { throw InputError(text(path_, ": ", what)); }

const json* ConfigFields::find(const std::string& name) {
  asked_.insert(name);
  const auto found = file_.find(name);
  return found == file_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigFields::integer(const std::string& name, std::int64_t& value) {
  find(name);
  value = json_value<std::int64_t>(file_, name.c_str(), value, path_);
}

void ConfigFields::number(const std::string& name, double& value) {
  find(name);
  value = json_value<double>(file_, name.c_str(), value, path_);
  if (!std::isfinite(value)) refuse_json(path_, name, "a number", file_[name]);
}

void ConfigFields::flag(const std::string& name, bool& value) {
  find(name);
  value = json_value<bool>(file_, name.c_str(), value, path_);
}

void ConfigFields::word(const std::string& name, std::string& value) {
  find(name);
  value = json_value<std::string>(file_, name.c_str(), value, path_);
}

void ConfigFields::required(const std::string& name, std::int64_t& value) {
  if (!find(name)) refuse(name + " is missing");
  integer(name, value);
}

void ConfigFields::only(const std::string& name, const std::string& accepted) {
  const json* value = find(name);
  if (value && *value != json::parse(accepted))
    refuse(text(name, " = ", shortened(*value), " is not supported; only ", accepted, " is"));
}

void ConfigFields::refuse_the_rest() const {
  for (const char* name : deciding) {
    const auto found = file_.find(name);
    if (found == file_.end() || asked_.contains(name) || says_nothing(name, *found)) continue;
    const bool experts = std::string_view(name).find("expert") != std::string_view::npos ||
                         name == std::string_view("moe_intermediate_size");
    refuse(text(
        name, " = ", shortened(*found),
        experts ? ": a mixture of experts, which is not trained here; take a model without experts"
                : " is not supported for this model_type; remove the field if the weights were trained without it"));
  }
}

std::string ConfigFields::used() const {
  json fields = json::object();
  for (const auto& [name, value] : file_.items())
    if (asked_.contains(name) && name != "bos_token_id" && name != "eos_token_id") fields[name] = value;
  return fields.dump();
}

}  // namespace zero
