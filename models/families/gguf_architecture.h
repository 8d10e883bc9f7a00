#pragma once
// GgufArchitecture: llama.cpp's name for a family, and facts about how llama.cpp computes it (src/models/*.cpp). They
// decide if and how a model is converted to a GGUF file and back. A family states only its differences from the
// defaults. Tensor names follow from the family's DecoderNames. Does not include LibTorch.
#include <cstdint>
#include <string>

#include "models/model_config.h"

namespace zero {

/// The config.json field names of a family for values that GGUF files store under keys of their own. An empty name
/// means that the family has no such field.
struct GgufFieldNames {
  std::string context = "max_position_embeddings", width = "hidden_size", layers = "num_hidden_layers",
              inner = "intermediate_size", heads = "num_attention_heads", kv_heads = "num_key_value_heads",
              head_dim = "head_dim", eps = "rms_norm_eps";
};

inline constexpr std::int64_t usual_window_pattern = 6;  // n of local_layers if a file does not say

struct GgufArchitecture {
  /// The projections that have biases: none; q, k and v; all; or all if attention_bias and mlp_bias say so.
  enum class Biases : std::uint8_t { none, qkv, all, as_configured };

  std::string name = {};            // general.architecture; empty if llama.cpp's form of the family is unknown here
  bool rotates_neighbours = false;  // rope rotates (2i, 2i + 1), not (i, i + n / 2): rows of q and k are reordered
  Biases biases = Biases::none;
  Activation activation = Activation::silu;
  NormKind norm = NormKind::rms;
  HeadNorm head_norm = HeadNorm::none;
  bool gated = true;
  bool learned_positions = false;
  bool multipliers = false;        // files state factors of the embedding, the scores, the residuals and the logits
  bool scaled_embedding = false;   // the embedding is multiplied by sqrt(hidden_size)
  bool any_head_dim = true;        // otherwise head_dim is hidden_size / num_attention_heads
  bool frequency_factors = false;  // rope_type "llama3", stored as rope_freqs.weight
  bool long_factors = false;       // rope_type "longrope", stored as rope_factors_long.weight and _short
  bool partial_rotary = false;     // heads may rotate only some of their dimensions
  bool local_layers = false;       // all layers but every n-th have a window and their own rope
  bool told_window = false;        // files declare a window that llama.cpp does not apply
  std::int64_t plain_step = 0;     // every n-th layer does not rotate; 0: all do
  std::int64_t wide_scale_at = 0;  // with this many layers, scores are divided by sqrt(hidden_size / heads)
  bool needs_head = false;         // a tied head is written to the file too
  GgufFieldNames fields = {};
  std::string fixed = {};  // JSON object: values required in config.json that GGUF files do not state
};

}  // namespace zero
