#include "models/formats/gguf/gguf_layout.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/families/families.h"

namespace zero {

GgufLayout::GgufLayout(const ModelConfig& config)
    : layers_(family_of(config.model_type).names.layers + "."), plus_one_(config.norm == NormKind::rms_plus_one) {
  const Family& family = family_of(config.model_type);
  const DecoderNames& names = family.names;
  const auto add = [](std::map<std::string, Module>& to, const std::string& module, Module there) {
    if (!module.empty()) to[module] = std::move(there);
  };
  add(outer_, names.embedding, {"token_embd"});
  add(outer_, names.positions, {"position_embd"});
  add(outer_, names.final_norm, {"output_norm"});
  add(outer_, names.head, {"output"});
  add(inner_, names.before_attention, {"attn_norm"});
  add(inner_, names.after_attention, {"post_attention_norm"});
  add(inner_, names.before_mlp, {"ffn_norm"});
  add(inner_, names.after_mlp, {"post_ffw_norm"});
  add(inner_, names.q_norm, {"attn_q_norm"});
  add(inner_, names.k_norm, {"attn_k_norm"});
  const auto projections = [&](const std::vector<std::string>& modules, const std::vector<std::string>& there) {
    for (std::size_t i = 0; i < modules.size(); ++i) add(inner_, modules[i], {there[i], false, names.input_first});
  };
  const bool fused = names.qkv.size() == 1, gated = names.mlp_input.size() == 2;
  projections(names.qkv,
              fused ? std::vector<std::string>{"attn_qkv"} : std::vector<std::string>{"attn_q", "attn_k", "attn_v"});
  projections({names.attention_output}, {"attn_output"});
  projections(names.mlp_input,
              gated ? std::vector<std::string>{"ffn_gate", "ffn_up"} : std::vector<std::string>{"ffn_up"});
  projections({names.mlp_output}, {"ffn_down"});
  ZERO_CHECK(!fused || !family.gguf.rotates_neighbours, "rows of a fused projection do not change places");
  if (family.gguf.rotates_neighbours)
    for (std::size_t i = 0; i < 2; ++i) inner_.at(names.qkv[i]).rotated = true;
}

GgufPlace GgufLayout::place(const std::string& tensor) const {
  const std::size_t dot = tensor.rfind('.');
  ZERO_CHECK(dot != std::string::npos, "no GGUF name for " + tensor);
  std::string module = tensor.substr(0, dot), block;
  const std::string kind = tensor.substr(dot);  // ".weight"
  const bool in_block = module.starts_with(layers_);
  if (in_block) {
    const std::size_t end = module.find('.', layers_.size());
    ZERO_CHECK(end != std::string::npos, "no GGUF name for " + tensor);
    block = "blk." + module.substr(layers_.size(), end - layers_.size()) + ".";
    module = module.substr(end + 1);
  }
  const auto& modules = in_block ? inner_ : outer_;
  const auto found = modules.find(module);
  ZERO_CHECK(found != modules.end(), "no GGUF name for " + tensor);
  const Module& there = found->second;
  GgufPlace place{block + there.name + kind, there.rotated, there.transposed && kind == ".weight"};
  place.plus_one = plus_one_ && kind == ".weight" && there.name.ends_with("_norm");
  return place;
}

std::vector<std::int64_t> shape_in_file(const TensorSpec& tensor, const GgufPlace& place) {
  return place.transposed ? std::vector<std::int64_t>{tensor.shape.rbegin(), tensor.shape.rend()} : tensor.shape;
}

at::Tensor neighbours_from_halves(const at::Tensor& rows, std::int64_t head_dim) {
  return rows.view({-1, 2, head_dim / 2, rows.size(1)}).transpose(1, 2).reshape(rows.sizes());
}

at::Tensor in_file_form(const at::Tensor& values, const GgufPlace& place, std::int64_t head_dim) {
  if (place.transposed) return values.t().contiguous();
  if (place.plus_one) return values + 1;
  if (!place.rotated) return values;
  const bool is_vector = place.name.ends_with(".bias");
  const at::Tensor rows = is_vector ? values.view({-1, 1}) : values;
  return neighbours_from_halves(rows, head_dim).view(values.sizes());
}

}  // namespace zero
