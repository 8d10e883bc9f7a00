// Decoders with all features that Llama lacks. At every stage, with any ranks and micro-batches, they train like one
// rank with the whole batch, in fp64, with and without adapters.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/sim/training_run.h"

namespace zero::testing {
namespace {

struct Parts {
  const char* name;
  ModelConfig config;
};
std::ostream& operator<<(std::ostream& out, const Parts& parts) { return out << parts.name; }

ModelConfig with_biases(ModelConfig config) {
  config.qkv_bias = config.output_bias = config.mlp_bias = true;
  return config;
}

/// Four norms a block around 1, norms of each query and key head, biases, a tied head, scaled embeddings. One of its
/// three layers has a window and a rope of its own, one does not rotate, one sees all.
Parts gemma_like() {
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

/// Norms only after attention and MLP, and over all heads together. Heads rotate in part, and long documents use other
/// factors than short ones.
Parts olmo_like() {
  ModelConfig config = small_config(false);
  config.model_type = "olmo2";
  config.head_norm = HeadNorm::all_heads;
  config.rotary_share = 0.5;
  config.rope_scaling = LongRopeScaling{{1.5}, {4}, 1.2, 4};
  config.layers = {{LayerAttention::Rope::global, 4, 0}, {}};
  return {"olmo_like", config};
}

/// Layer norms, learned positions, no gate, one matrix for q, k and v, weights stored [in, out].
Parts gpt2_like() {
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

/// q, k and v, and gate and up, fused.
Parts phi3_like() {
  ModelConfig config = small_config(false);
  config.model_type = "phi3";
  config.layers = {{LayerAttention::Rope::global, 3, 0}, {}};
  return {"phi3_like", config};
}

class FamilyParity : public ::testing::TestWithParam<std::tuple<Parts, int, int>> {
 protected:
  RunOptions reference() const {
    RunOptions run;
    run.config = std::get<0>(GetParam()).config;
    run.ragged = true;
    run.steps = 4;
    run.optimizer.eps = 1e-5;  // a bias of keys alone changes nothing: its gradient is nothing but rounding
    return run;
  }

  void expect_equal_runs(const RunOptions& reference) const {
    const RunResult expected = run_training(reference);
    ASSERT_GT(expected.norms.back(), 0);
    for (const int micro_batches : {1, 2, 3}) {
      RunOptions run = reference;
      run.stage = std::get<1>(GetParam());
      run.ranks = std::get<2>(GetParam());
      run.micro_batches = micro_batches;
      if (run.global_batch % (run.ranks * micro_batches)) continue;
      run.recompute_every = micro_batches == 3;
      run.recompute_attention = micro_batches == 2;
      EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12) << micro_batches << " micro-batches";
    }
  }
};

TEST_P(FamilyParity, EqualsOneRankWithTheWholeBatch) { expect_equal_runs(reference()); }

TEST_P(FamilyParity, EqualsOneRankUnderAdapters) {
  RunOptions run = reference();
  run.lora.emplace();
  run.lora->r = 3;
  run.lora->alpha = 6;
  run.lora->dropout = 0.3;
  run.lora->target_modules = {"all-linear"};
  expect_equal_runs(run);
}

INSTANTIATE_TEST_SUITE_P(Matrix, FamilyParity,
                         ::testing::Combine(::testing::Values(gemma_like(), olmo_like(), gpt2_like(), phi3_like()),
                                            ::testing::Range(0, 4), ::testing::Range(1, 5)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_stage" +
                                  std::to_string(std::get<1>(info.param)) + "_np" +
                                  std::to_string(std::get<2>(info.param));
                         });

}  // namespace
}  // namespace zero::testing
