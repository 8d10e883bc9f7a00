#pragma once
// Small decoders that together have all features of the model families.
#include <cmath>
#include <ostream>

#include "tests/sim/training_run.h"

namespace zero::testing {

struct Parts {
  const char* name;
  ModelConfig config;
};
inline std::ostream& operator<<(std::ostream& out, const Parts& parts) { return out << parts.name; }

/// Three steps over ragged rows, whose gradients are kept.
inline RunOptions ragged_run(const Parts& parts, std::int64_t global_batch) {
  RunOptions run;
  run.config = parts.config;
  run.ragged = true;
  run.steps = 3;
  run.global_batch = global_batch;
  run.seq_len = 5;
  run.optimizer.eps = 1e-5;  // a bias of keys alone changes nothing: its gradient is nothing but rounding
  run.keep_gradients = true;
  return run;
}

inline ModelConfig with_biases(ModelConfig config) {
  config.qkv_bias = config.output_bias = config.mlp_bias = true;
  return config;
}

/// Four norms per block with weights around 1, norms of each query and key head, biases, a tied head, scaled
/// embeddings. The three layers have local RoPE with a window of 3 tokens, no RoPE with a window of 2, and global RoPE
/// with full attention.
inline Parts gemma_like() {
  ModelConfig config = with_biases(small_config(true));
  config.model_type = "gemma3_text";
  config.num_hidden_layers = 3;
  config.norm = NormKind::rms_plus_one;
  config.head_norm = HeadNorm::each_head;
  config.activation = Activation::gelu_tanh;
  config.embedding_scale = std::sqrt(24.0);
  config.local_rope_theta = 100;
  config.rope_scaling = LinearScaling{4};
  using Rope = LayerAttention::Rope;
  config.layers = {{Rope::local, 3, 0.4}, {Rope::none, 2, 0}, {Rope::global, 0, 0.6}};
  return {"gemma_like", config};
}

/// Norms only after attention and MLP, and over all heads together. RoPE rotates only a part of each head, and uses
/// other factors for long documents. Residuals and logits are scaled.
inline Parts olmo_like() {
  ModelConfig config = small_config(false);
  config.model_type = "olmo2";
  config.head_norm = HeadNorm::all_heads;
  config.rotary_share = 0.5;
  config.rope_scaling = LongRopeScaling{{1.5}, {4}, 1.2, 4};
  config.residual_scale = 0.3;
  config.logits_scale = 0.5;
  config.layers = {{LayerAttention::Rope::global, 4, 0}, {}};
  return {"olmo_like", config};
}

/// Layer norms, learned positions, an MLP without a gate, one matrix for q, k and v, weights stored [in, out].
inline Parts gpt2_like() {
  ModelConfig config = with_biases(small_config(true));
  config.model_type = "gpt2";
  config.num_key_value_heads = config.num_attention_heads;
  config.norm = NormKind::layer;
  config.activation = Activation::gelu;
  config.gated = false;
  config.learned_positions = true;
  config.layers = {{LayerAttention::Rope::none, 0, 0.5}, {LayerAttention::Rope::none, 4, 0.25}};
  return {"gpt2_like", config};
}

/// q, k and v, and gate and up, fused. Residuals and logits are scaled.
inline Parts phi3_like() {
  ModelConfig config = small_config(false);
  config.model_type = "phi3";
  config.residual_scale = 0.3;
  config.logits_scale = 0.5;
  config.layers = {{LayerAttention::Rope::global, 3, 0}, {}};
  return {"phi3_like", config};
}

/// Four key-value heads. Where even division is not required, four ranks do not evenly divide vocabulary, tokens and
/// width.
inline Parts four_heads() {
  ModelConfig config = small_config(true);
  config.num_attention_heads = 8;
  config.num_key_value_heads = 4;
  config.head_dim = 6;
  config.intermediate_size = 45;
  return {"four_heads", config};
}

/// GPT-2's parts with a number of heads that four ranks divide.
inline Parts gpt2_of_four() {
  ModelConfig config = gpt2_like().config;
  config.num_attention_heads = config.num_key_value_heads = 4;
  config.head_dim = 6;
  return {"gpt2_of_four", config};
}

}  // namespace zero::testing
