#pragma once
// ModelConfig: the sizes and kinds from which a decoder is built, and the presets. A family (models/families) fills it
// from a config.json. Does not include LibTorch.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/rope_scaling.h"

namespace zero {

/// `layer` uses mean and variance, and has a bias. `rms` uses the root mean square. `rms_plus_one` does too, but stores
/// weights as their distance from 1.
enum class NormKind : std::uint8_t { rms, rms_plus_one, layer };
/// How queries and keys are normalised before rotation: not at all, each head by itself, or all heads of a token
/// together.
enum class HeadNorm : std::uint8_t { none, each_head, all_heads };
enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, relu };

/// The settings of attention that may differ between layers.
struct LayerAttention {
  enum class Rope : std::uint8_t { global, local, none };
  Rope rope = Rope::global;
  std::int64_t window = 0;  // number of visible tokens, including the token itself; 0: all earlier ones
  double scale = 0;         // of scores; 0: 1 / sqrt(head_dim)
};

/// The shares of elements that training drops.
struct DropoutShares {
  double embedding = 0;  // of embedded tokens, with their positions
  double attention = 0;  // of attention's probabilities
  double residual = 0;   // of what attention and the MLP add to the residual stream
  bool any() const { return embedding > 0 || attention > 0 || residual > 0; }
  bool operator==(const DropoutShares&) const = default;
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
  double rms_norm_eps = 1e-5;  // of every kind of norm
  double rope_theta = 10000.0;
  std::optional<RopeScaling> rope_scaling;
  bool tie_word_embeddings = false;
  double initializer_range = 0.02;
  // The same for matrices whose outputs the residual stream adds; empty: initializer_range.
  std::optional<double> residual_initializer_range;
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;
  // If false, head_dim is hidden_size / num_attention_heads, and set_model_field() keeps that true.
  bool head_dim_given = false;

  NormKind norm = NormKind::rms;
  HeadNorm head_norm = HeadNorm::none;
  Activation activation = Activation::silu;
  bool gated = true;  // one half of the rows, activated, multiplies the other half
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool learned_positions = false;
  double rotary_share = 1;     // the share of a head's dimensions that rotate: the first ones
  double embedding_scale = 1;  // multiplies the embedding's rows
  double residual_scale = 1;   // multiplies what attention and the MLP add to the residual stream
  double logits_scale = 1;     // multiplies the logits
  double local_rope_theta = 10000.0;
  std::optional<RopeScaling> local_rope_scaling;  // of layers with Rope::local
  std::vector<LayerAttention> layers;             // empty: all layers have LayerAttention's defaults
  DropoutShares dropout;                          // of config.json
  std::optional<DropoutShares> run_dropout;       // replaces that of config.json in training, not in files
  // The fields of config.json that affect results, as a JSON object. If empty, they are those of a Llama with the
  // values above.
  std::string fields;

  const DropoutShares& trained_dropout() const { return run_dropout ? *run_dropout : dropout; }
  LayerAttention layer(std::int64_t index) const {
    return layers.empty() ? LayerAttention{} : layers.at(std::size_t(index));
  }
};

/// True if sequences of up to `seq_len` tokens give the same results when two of them, in one row, share a trunk
/// (models/unit.h). Windows must cover such a row. Scaling that depends on a sequence's length must not set in.
bool takes_trunks(const ModelConfig& config, std::int64_t seq_len);

/// "llama-tiny", "llama-15m", "llama-110m", "tinyllama-1.1b". Throws InputError that lists the presets.
ModelConfig preset_config(const std::string& name);
const std::vector<std::string>& preset_names();

/// Throws InputError if fields contradict each other (heads that do not divide evenly, odd head_dim, sizes below 1).
void validate(const ModelConfig& config, const std::string& path);

}  // namespace zero
