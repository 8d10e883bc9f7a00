#include "models/formats/gguf_model.h"

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <numbers>

#include "base/error.h"
#include "base/log.h"
#include "models/formats/gguf_vocabulary.h"
#include "models/formats/gguf_writer.h"
#include "models/weight_chunks.h"

namespace zero {
namespace {

std::int64_t file_type(GgmlType type) {  // enum llama_ftype
  switch (type) {
    case GgmlType::f32:
      return 0;
    case GgmlType::f16:
      return 1;
    case GgmlType::q8_0:
      return 7;
    case GgmlType::bf16:
      return 32;
    case GgmlType::q4_0:
      return 2;
    default:
      throw InternalError("no GGUF file is written in this type");
  }
}

GgufMetadata metadata_of(const ModelConfig& config, const GgufOptions& options) {
  GgufMetadata metadata;
  metadata.add("general.architecture", "llama");
  metadata.add("general.type", "model");
  if (!options.name.empty()) metadata.add("general.name", options.name);
  metadata.add_uint32("general.file_type", file_type(options.type));
  metadata.add_uint32("general.quantization_version", 2);
  metadata.add_uint32("llama.context_length", config.max_position_embeddings);
  metadata.add_uint32("llama.embedding_length", config.hidden_size);
  metadata.add_uint32("llama.block_count", config.num_hidden_layers);
  metadata.add_uint32("llama.feed_forward_length", config.intermediate_size);
  metadata.add_uint32("llama.attention.head_count", config.num_attention_heads);
  metadata.add_uint32("llama.attention.head_count_kv", config.num_key_value_heads);
  metadata.add_uint32("llama.attention.key_length", config.head_dim);
  metadata.add_uint32("llama.attention.value_length", config.head_dim);
  metadata.add_float32("llama.attention.layer_norm_rms_epsilon", config.rms_norm_eps);
  metadata.add_uint32("llama.rope.dimension_count", config.head_dim);
  metadata.add_float32("llama.rope.freq_base", config.rope_theta);
  metadata.add_uint32("llama.vocab_size", config.vocab_size);
  add_tokenizer(metadata, options.tokenizer, config);
  return metadata;
}

GgmlType type_of(const TensorSpec& tensor, GgmlType wanted) {
  if (tensor.shape.size() < 2) return GgmlType::f32;
  return tensor.shape.back() % ggml_block(wanted) == 0 ? wanted : GgmlType::f16;
}

at::ScalarType range_of(GgmlType type) {  // blocks keep a part of a value in fp16: a bound on the safe side
  return type == GgmlType::f16 || ggml_block(type) > 1 ? at::kHalf : at::kFloat;
}

}  // namespace

std::string gguf_name(const std::string& name) {
  static const std::map<std::string, std::string> outer{{"model.embed_tokens.weight", "token_embd.weight"},
                                                        {"model.norm.weight", "output_norm.weight"},
                                                        {"lm_head.weight", "output.weight"}};
  static const std::map<std::string, std::string> inner{
      {"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},   {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  if (const auto found = outer.find(name); found != outer.end()) return found->second;
  const std::string prefix = "model.layers.", suffix = ".weight";
  const std::size_t dot = name.find('.', prefix.size());
  ZERO_CHECK(name.starts_with(prefix) && name.ends_with(suffix) && dot < name.size() - suffix.size(),
             "no GGUF name for " + name);
  const auto found = inner.find(name.substr(dot + 1, name.size() - suffix.size() - dot - 1));
  ZERO_CHECK(found != inner.end(), "no GGUF name for " + name);
  return "blk." + name.substr(prefix.size(), dot - prefix.size()) + "." + found->second + suffix;
}

bool is_rotated(const std::string& name) {
  return name.ends_with(".q_proj.weight") || name.ends_with(".k_proj.weight");
}

at::Tensor neighbours_from_halves(const at::Tensor& rows, std::int64_t head_dim) {
  return rows.view({-1, 2, head_dim / 2, rows.size(1)}).transpose(1, 2).reshape(rows.sizes());
}

std::vector<float> rope_factors(const ModelConfig& config) {
  if (!config.rope_scaling || !std::holds_alternative<Llama3Scaling>(*config.rope_scaling)) return {};
  const Llama3Scaling& scaling = std::get<Llama3Scaling>(*config.rope_scaling);
  const double old_context = static_cast<double>(scaling.original_max_position_embeddings);
  std::vector<float> factors;
  for (std::int64_t i = 0; i < config.head_dim; i += 2) {
    const double wavelength =
        2 * std::numbers::pi *
        std::pow(config.rope_theta, static_cast<double>(i) / static_cast<double>(config.head_dim));
    const double smooth =
        (old_context / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
    const double kept = smooth > 1 ? 1 : smooth < 0 ? 0 : smooth;
    factors.push_back(static_cast<float>(1 / ((1 - kept) / scaling.factor + kept)));
  }
  return factors;
}

namespace {

/// What llama.cpp's architecture "llama" is not written with here.
void check_architecture(const ModelConfig& config) {
  if (config.model_type != "llama")
    throw InputError("GGUF files are written of model_type \"llama\" alone, not of \"" + config.model_type +
                     "\"; a Hugging Face directory can be converted by llama.cpp's convert_hf_to_gguf.py");
  const char* what = nullptr;
  if (config.qkv_bias || config.output_bias || config.mlp_bias) what = "with biases";
  if (config.activation != Activation::silu) what = "with another activation than silu";
  if (config.rope_scaling && !std::holds_alternative<Llama3Scaling>(*config.rope_scaling))
    what = "with another rope_type than \"default\" and \"llama3\"";
  if (what)
    throw InputError(text("GGUF files are not written of a Llama ", what,
                          "; a Hugging Face directory can be converted by llama.cpp's convert_hf_to_gguf.py"));
}

}  // namespace

void write_gguf(const std::string& path, const Model& model, WeightSource& weights, const GgufOptions& options) {
  check_architecture(model.config);
  const std::vector<TensorSpec> tensors = tensors_of(model);
  weights.check(tensors);
  const std::vector<float> factors = rope_factors(model.config);
  std::vector<GgufTensor> described;
  if (!factors.empty())
    described.push_back({"rope_freqs.weight", {static_cast<std::int64_t>(factors.size())}, GgmlType::f32});
  std::int64_t without_blocks = 0;
  for (const TensorSpec& tensor : tensors) {
    described.push_back({gguf_name(tensor.name), tensor.shape, type_of(tensor, options.type)});
    without_blocks += tensor.shape.size() > 1 && described.back().type != options.type;
  }
  if (without_blocks > 0)
    log_info("note: ", without_blocks, " matrices are F16: their rows are no multiple of ", q8_block);

  GgufWriter writer(path, metadata_of(model.config, options), described);
  if (!factors.empty()) writer.append(at::tensor(at::ArrayRef<float>(factors), at::kFloat));
  for (const TensorSpec& tensor : tensors) {
    const bool rotated = is_rotated(tensor.name);
    const ChunkOptions chunks{range_of(type_of(tensor, options.type)), rotated ? model.config.head_dim : 1};
    read_in_chunks(weights, tensor, chunks, [&](const at::Tensor& values) {
      writer.append(rotated ? neighbours_from_halves(values, model.config.head_dim) : values);
    });
  }
  writer.finish();
}

}  // namespace zero
