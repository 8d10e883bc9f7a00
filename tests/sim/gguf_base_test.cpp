// LoRA on a base from a GGUF file. Kept in the file's types, it trains bit for bit as the decoded values do, at every
// stage and on any ranks. So does an 8-bit base, since rounding rounded values changes nothing.
#include <gtest/gtest.h>

#include "models/families/families.h"
#include "models/formats/gguf/gguf_weights.h"
#include "models/formats/gguf_model.h"
#include "models/formats/hf_directory.h"
#include "models/initial_weights.h"
#include "tests/sim/training_run.h"
#include "tests/unit/temporary_folder.h"

namespace zero::testing {
namespace {

RunOptions run_over(const std::string& base) {
  RunOptions run;
  run.config = small_config(false);
  run.config.hidden_size = 32;  // rows of whole blocks, but for o's
  run.config.intermediate_size = 64;
  run.lora.emplace();
  run.lora->r = 3;
  run.lora->target_modules = {"all-linear"};
  run.compute = run.master = at::kFloat;
  run.steps = 3;
  run.base = base;
  return run;
}

void write_base(const std::string& path, GgmlType type) {
  const Model model = make_model(run_over("").config);
  RandomWeights weights(model, 7);
  write_gguf(path, model, weights, {.type = type});
}

FrozenFormat as_held(const std::string& path) {
  FrozenFormat format;
  format.ggml_type = [weights = open_gguf_model(path).weights](const TensorSpec& tensor) {
    return weights->type_of(tensor);
  };
  return format;
}

/// In fp64, where sums over ranks agree.
void expect_the_same_on_any_ranks(RunOptions run) {
  run.compute = run.master = at::kDouble;
  const RunResult expected = run_training(run);
  for (const auto& [stage, ranks] : {std::pair{0, 2}, {1, 3}, {2, 2}, {3, 1}, {3, 2}, {3, 3}, {3, 4}})
    for (const bool keep : {false, true}) {
      run.stage = stage;
      run.ranks = ranks;
      run.keep_frozen = keep;
      EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12)
          << "stage " << stage << ", " << ranks << " ranks, keep " << keep;
    }
}

class GgufBase : public ::testing::TestWithParam<GgmlType> {};

TEST_P(GgufBase, TrainsAsTheDecodedValuesDo) {
  const TemporaryFolder folder;
  const std::string path = folder / "base.gguf";
  write_base(path, GetParam());
  RunOptions run = run_over(path);
  const RunResult decoded = run_training(run);
  EXPECT_GT(largest_difference(decoded, run_training(run_over(""))), 1e-6);
  run.frozen = as_held(path);
  EXPECT_EQ(largest_difference(decoded, run_training(run)), 0);
  if (GetParam() == GgmlType::q8_0) {
    RunOptions again = run;
    again.frozen = FrozenFormat::in_8_bits();
    EXPECT_EQ(largest_difference(decoded, run_training(again)), 0) << "rounded to 8 bits again";
  }
  expect_the_same_on_any_ranks(run);
}

INSTANTIATE_TEST_SUITE_P(Types, GgufBase,
                         ::testing::Values(GgmlType::f16, GgmlType::bf16, GgmlType::q8_0, GgmlType::q4_0),
                         [](const auto& info) { return ggml_name(info.param); });

// A file of the Python package gguf, with a matrix in each type that is only read. Blocks have 32 or 256 values.
TEST(GgufBaseOfTypes, TrainsAsTheDecodedValuesDo) {
  RunOptions run = run_over(ZERO_TEST_DATA "/gguf_types.gguf");
  run.config = open_gguf_model(run.base).config;
  const RunResult decoded = run_training(run);
  run.frozen = as_held(run.base);
  EXPECT_EQ(largest_difference(decoded, run_training(run)), 0);
  expect_the_same_on_any_ranks(run);
}

class GgufBaseOfFamily : public ::testing::TestWithParam<const char*> {};

// Each family has its own names, orders and layouts: fused, permuted, stored [in, out], with biases and norms. Covers
// the golden cases that llama.cpp has an architecture for.
TEST_P(GgufBaseOfFamily, TrainsAsTheDecodedValuesDo) {
  const TemporaryFolder folder;
  const std::string path = folder / "base.gguf";
  RunOptions run = run_over("");
  run.config = HfDirectory(std::string(ZERO_TEST_DATA "/families/") + GetParam() + "/model").config();
  const Model model = make_model(run.config);
  RandomWeights weights(model, 7);
  write_gguf(path, model, weights, {.type = GgmlType::bf16});
  run.base = path;
  const RunResult decoded = run_training(run);
  run.frozen = as_held(path);
  EXPECT_EQ(largest_difference(decoded, run_training(run)), 0);
  run.compute = run.master = at::kDouble;
  const RunResult expected = run_training(run);
  for (const auto& [stage, ranks] : {std::pair{1, 3}, {3, 2}, {3, 4}}) {
    run.stage = stage;
    run.ranks = ranks;
    EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12) << "stage " << stage << ", " << ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GgufBaseOfFamily, ::testing::Values("qwen3", "phi3-longrope", "olmo2", "gpt2"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace zero::testing
