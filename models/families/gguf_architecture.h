#pragma once
// GgufArchitecture: llama.cpp's name of a family, and facts about its computation (its src/models/*.cpp). They decide
// how a model becomes a GGUF file and comes back, or is refused. A family states its differences from the defaults.
// Names of tensors follow from the family's DecoderNames. No LibTorch.
#include <cstdint>
#include <string>

#include "models/model_config.h"

namespace zero {

/// Names of fields in a family's config.json for numbers that GGUF files store under their own keys. Empty: the family
/// has no such field.
struct GgufFieldNames {
  std::string context = "max_position_embeddings", width = "hidden_size", layers = "num_hidden_layers",
              inner = "intermediate_size", heads = "num_attention_heads", kv_heads = "num_key_value_heads",
              head_dim = "head_dim", eps = "rms_norm_eps";
};

inline constexpr std::int64_t usual_window_pattern = 6;  // n of local_layers, if a file does not say

struct GgufArchitecture {
  /// Biases of no projection; of q, k and v; of all; of all if attention_bias and mlp_bias say so.
  enum class Biases : std::uint8_t { none, qkv, all, as_configured };

  std::string name = {};            // general.architecture; empty: the family's form in llama.cpp is unknown here
  bool rotates_neighbours = false;  // rope turns (2i, 2i + 1) instead of (i, i + n / 2): rows of q and k change places
  Biases biases = Biases::none;
  Activation activation = Activation::silu;
  NormKind norm = NormKind::rms;
  HeadNorm head_norm = HeadNorm::none;
  bool gated = true;
  bool learned_positions = false;
  bool scaled_embedding = false;   // rows of the embedding times sqrt(hidden_size)
  bool any_head_dim = true;        // else hidden_size / num_attention_heads
  bool frequency_factors = false;  // rope_type "llama3", as rope_freqs.weight
  bool long_factors = false;       // rope_type "longrope", as rope_factors_long.weight and _short
  bool partial_rotary = false;     // heads may rotate in part
  bool local_layers = false;       // windows with a rope of their own in all layers but every n-th; else no windows
  bool told_window = false;        // files declare a window that llama.cpp does not apply
  std::int64_t plain_step = 0;     // every n-th layer does not rotate; 0: all do
  std::int64_t wide_scale_at = 0;  // with this many layers scores are over sqrt(hidden_size / heads)
  bool needs_head = false;         // a tied head is written too
  GgufFieldNames fields = {};
  std::string fixed = {};  // JSON object: required values of config.json that no file states
};

}  // namespace zero
