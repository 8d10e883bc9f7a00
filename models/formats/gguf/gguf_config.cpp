#include "models/formats/gguf/gguf_config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/families/families.h"
#include "models/formats/gguf/gguf_keys.h"
#include "models/formats/gguf/gguf_rope.h"

namespace zero {
namespace {

using nlohmann::json;

constexpr std::int64_t most_layers = 1 << 16;  // of a list; families refuse more

/// Builds a config.json from a GGUF file.
class ConfigOfFile {
 public:
  ConfigOfFile(const GgufFile& file, const Family& family)
      : file_(file), there_(family.gguf), fields_(there_.fields), keys_(file, there_.name + ".") {
    config_ = json::parse(there_.fixed.empty() ? "{}" : there_.fixed);
    config_["model_type"] = family.model_type;
    config_["tie_word_embeddings"] = !file.find("output.weight");
    turns_ = family.names.positions.empty();
    eps_key_ =
        "attention." + std::string(there_.norm == NormKind::layer ? "layer_norm_epsilon" : "layer_norm_rms_epsilon");
  }

  std::string text() {
    sizes();
    heads();
    if (there_.biases == GgufArchitecture::Biases::as_configured) {
      config_["attention_bias"] = file_.find("blk.0.attn_q.bias") != nullptr;
      config_["mlp_bias"] = file_.find("blk.0.ffn_up.bias") != nullptr;
    }
    rope();
    if (there_.local_layers) local_layers();
    if (there_.told_window) window();
    if (there_.multipliers) multipliers();
    keys_.expect("expert_count", std::int64_t(0));
    keys_.expect("expert_used_count", std::int64_t(0));
    keys_.pass_over("tensor_data_layout");  // the converter's source of the weights
    keys_.close();
    tokens();
    return config_.dump(2);
  }

 private:
  [[noreturn]] void missing(const std::string& key) const {
    throw InputError(zero::text(file_.path(), ": ", there_.name, ".", key, " is missing"));
  }
  std::int64_t at_least_1(const std::string& name, std::int64_t value) const {
    if (value < 1) throw InputError(zero::text(file_.path(), ": ", name, " = ", value, ": must be 1 or more"));
    return value;
  }
  std::int64_t needed(const std::string& key, const std::string& name) {
    const auto value = keys_.integer(key);
    if (!value) missing(key);
    config_[name] = *value;
    return at_least_1(name, *value);
  }

  void sizes() {
    context_ = needed("context_length", fields_.context);
    width_ = needed("embedding_length", fields_.width);
    layers_ = needed("block_count", fields_.layers);
    needed("feed_forward_length", fields_.inner);
    heads_ = needed("attention.head_count", fields_.heads);
    const auto eps = keys_.number(eps_key_);
    if (!eps) missing(eps_key_);
    config_[fields_.eps] = *eps;
    const GgufEntry* embedding = file_.find("token_embd.weight");
    if (const auto vocabulary = keys_.integer("vocab_size"))
      config_["vocab_size"] = *vocabulary;
    else if (embedding && embedding->shape.size() == 2)
      config_["vocab_size"] = embedding->shape[0];
  }

  void heads() {
    head_dim_ = keys_.integer("attention.key_length").value_or(width_ / heads_);
    at_least_1("head_dim", head_dim_);
    if (fields_.head_dim.empty())
      keys_.expect("attention.key_length", width_ / heads_);
    else
      config_[fields_.head_dim] = head_dim_;
    keys_.expect("attention.value_length", head_dim_);
    if (fields_.kv_heads.empty())
      keys_.expect("attention.head_count_kv", heads_);
    else
      config_[fields_.kv_heads] = keys_.integer("attention.head_count_kv").value_or(heads_);
  }

  void rope() {
    if (!turns_) return;
    std::int64_t turned = head_dim_;
    if (there_.partial_rotary)
      turned = keys_.integer("rope.dimension_count").value_or(head_dim_);
    else
      keys_.expect("rope.dimension_count", head_dim_);
    if (turned != head_dim_) config_["partial_rotary_factor"] = share_of(turned);
    const double theta = keys_.number("rope.freq_base").value_or(10000.0);
    config_["rope_theta"] = theta;
    if (json scaling = read_rope_scaling(keys_, turned, theta, context_); !scaling.is_null())
      config_["rope_scaling"] = std::move(scaling);
    if (there_.long_factors && config_.contains("rope_scaling"))  // takes precedence over the object's
      config_["original_max_position_embeddings"] =
          config_["rope_scaling"].value("original_max_position_embeddings", context_);
  }

  /// The rotated share of a head, given the rotated dimensions.
  double share_of(std::int64_t turned) const {
    if (turned < 2 || turned > head_dim_)
      throw InputError(zero::text(file_.path(), ": ", there_.name, ".rope.dimension_count = ", turned,
                                  ", where heads have ", head_dim_, " dimensions"));
    const double share = double(turned) / double(head_dim_);
    return std::int64_t(double(head_dim_) * share) == turned ? share : std::nextafter(share, 1.0);
  }

  void local_layers() {
    needed("attention.sliding_window", "sliding_window");
    const std::int64_t pattern =
        at_least_1("attention.sliding_window_pattern",
                   keys_.integer("attention.sliding_window_pattern").value_or(usual_window_pattern));
    for (std::int64_t i = 0; i < std::min(layers_, most_layers); ++i)
      config_["layer_types"].push_back((i + 1) % pattern != 0 ? "sliding_attention" : "full_attention");
    config_["rope_local_base_freq"] = keys_.number("rope.freq_base_swa").value_or(10000.0);
    const std::int64_t scaled = layers_ == there_.wide_scale_at ? width_ : head_dim_ * heads_;
    if (scaled % heads_ == 0)  // transformers accepts no other number
      config_["query_pre_attn_scalar"] = scaled / heads_;
    else
      config_["query_pre_attn_scalar"] = double(scaled) / double(heads_);
  }

  void window() {
    const std::int64_t window = keys_.integer("attention.sliding_window").value_or(0);
    config_["sliding_window"] = window > 0 ? json(window) : json();
  }

  void multipliers() {
    for (const auto& [key, name] :
         {std::pair("embedding_scale", "embedding_multiplier"), std::pair("residual_scale", "residual_multiplier"),
          std::pair("attention.scale", "attention_multiplier"), std::pair("logit_scale", "logits_scaling")}) {
      const auto factor = keys_.number(key);
      if (!factor) missing(key);
      config_[name] = *factor;
    }
  }

  void tokens() {
    const auto bos = file_.integer("tokenizer.ggml.bos_token_id"), eos = file_.integer("tokenizer.ggml.eos_token_id"),
               eot = file_.integer("tokenizer.ggml.eot_token_id");
    if (bos) config_["bos_token_id"] = *bos;
    if (eos && eot && *eos != *eot)
      config_["eos_token_id"] = {*eos, *eot};
    else if (eos)
      config_["eos_token_id"] = *eos;
  }

  const GgufFile& file_;
  const GgufArchitecture& there_;
  const GgufFieldNames& fields_;
  GgufKeys keys_;
  json config_;
  bool turns_ = true;
  std::string eps_key_;
  std::int64_t context_ = 0, width_ = 0, layers_ = 0, heads_ = 0, head_dim_ = 0;
};

}  // namespace

const Family& family_of(const GgufFile& file) {
  if (const auto type = file.word("general.type"); type && *type != "model")
    throw InputError(text(file.path(), ": holds a GGUF file of general.type \"", *type,
                          "\", no model; an adapter as GGUF is for llama.cpp, here its PEFT directory is named"));
  const auto name = file.word("general.architecture");
  if (!name) throw InputError(text(file.path(), ": has no general.architecture"));
  std::string known;
  for (const Family* family : model_families()) {
    if (family->gguf.name == *name) return *family;
    const std::string quoted = "\"" + family->gguf.name + "\"";
    if (!family->gguf.name.empty() && known.find(quoted) == std::string::npos)
      known += (known.empty() ? "" : ", ") + quoted;
  }
  throw InputError(text(file.path(), ": general.architecture \"", *name, "\" is not read; known are ", known));
}

std::string config_json_of(const GgufFile& file) { return ConfigOfFile(file, family_of(file)).text(); }

}  // namespace zero
