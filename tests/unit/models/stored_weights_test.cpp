// Models whose matrices are held in a GGUF file's types: they compute what the same models do with decoded values.
#include "models/generate/stored_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/families/families.h"
#include "models/formats/gguf/gguf_weights.h"
#include "models/formats/gguf_model.h"
#include "models/formats/hf_directory.h"
#include "models/generate/generator.h"
#include "models/initial_weights.h"
#include "models/lora/adapted_weights.h"
#include "models/ops/packed_matrix.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace stored_weights_test {

using Ids = Generator::Ids;

struct Loaded {
  Model model;
  HeldWeights held;
};

Loaded load(const GgufModel& source, at::ScalarType type, bool as_stored) {
  Loaded loaded{make_model(source.config), {}};
  StoredTypeOf type_of;
  if (as_stored) type_of = [&](const TensorSpec& tensor) { return source.weights->type_of(tensor); };
  loaded.held = load_as_stored(loaded.model, type, *source.weights, type_of);
  return loaded;
}

Ids ids_below(std::int64_t vocabulary, std::int64_t count) {
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>((7 * i + 3) % vocabulary));
  return ids;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

/// Passes of few tokens and of many, and generation from one prompt and from three.
void expect_the_same_results(Model& stored, Model& decoded) {
  Generator generator(stored), expected(decoded);
  const std::int64_t vocabulary = stored.config.vocab_size;
  for (const std::int64_t length : {1, 3, 8, 9, 30}) {
    const Ids ids = ids_below(vocabulary, length);
    EXPECT_LT(relative_difference(generator.logits(ids), expected.logits(ids)), 2e-5) << length;
  }
  GenerateOptions eight;
  eight.max_new_tokens = 8;
  const std::vector<Ids> prompts{ids_below(vocabulary, 12), ids_below(vocabulary, 5), ids_below(vocabulary, 1)};
  EXPECT_EQ(generator.generate(prompts, eight), expected.generate(prompts, eight));
  EXPECT_EQ(generator.generate({prompts[0]}, eight), expected.generate({prompts[0]}, eight));
}

// A file of the Python package gguf, with a matrix in each type that is only read. Its head is tied.
TEST(StoredWeights, OfEveryTypeComputeAsTheDecodedValuesDo) {
  const GgufModel source = open_gguf_model(ZERO_TEST_DATA "/gguf_types.gguf");
  Loaded stored = load(source, at::kFloat, true), decoded = load(source, at::kFloat, false);
  EXPECT_GE(stored.held.types.size(), 9U);
  EXPECT_EQ(decoded.held.stored, 0);
  EXPECT_EQ(decoded.held.bytes, 4 * decoded.model.numel());
  expect_the_same_results(stored.model, decoded.model);
}

void write_model(const std::string& path, const ModelConfig& config, GgmlType type) {
  const Model model = make_model(config);
  RandomWeights weights(model, 7);
  write_gguf(path, model, weights, {.type = type});
}

class StoredFamily : public ::testing::TestWithParam<const char*> {};

/// A golden model, with rows of whole blocks.
ModelConfig wide_config(const std::string& name) {
  ModelConfig config = HfDirectory(ZERO_TEST_DATA "/families/" + name + "/model").config();
  const bool shares_keys = config.num_key_value_heads < config.num_attention_heads;
  config.num_attention_heads = 64 / config.head_dim;
  config.num_key_value_heads = config.num_attention_heads / (shares_keys ? 2 : 1);
  config.hidden_size = 64;
  config.intermediate_size = 96;
  return config;
}

// Each family has its own names, orders and layouts: fused, permuted, stored [in, out], with biases and norms.
TEST_P(StoredFamily, ComputesAsTheDecodedValuesDo) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.gguf";
  const ModelConfig config = wide_config(GetParam());
  for (const GgmlType type : {GgmlType::q8_0, GgmlType::bf16}) {
    write_model(path, config, type);
    const GgufModel source = open_gguf_model(path);
    Loaded stored = load(source, at::kFloat, true), decoded = load(source, at::kFloat, false);
    EXPECT_GT(stored.held.stored, 0);
    expect_the_same_results(stored.model, decoded.model);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, StoredFamily, ::testing::Values("qwen3", "phi3-longrope", "olmo2", "gpt2"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(StoredWeights, AreConvertedIfThatTakesNoMoreMemory) {
  const TemporaryFolder folder;
  ModelConfig config = preset_config("llama-tiny");
  for (const auto& [type, in_fp32, in_bf16] : {std::tuple{GgmlType::f32, false, false},
                                               {GgmlType::f16, true, false},
                                               {GgmlType::bf16, true, false},
                                               {GgmlType::q4_0, true, true}}) {
    write_model(folder / "a.gguf", config, type);
    const GgufModel source = open_gguf_model(folder / "a.gguf");
    EXPECT_EQ(load(source, at::kFloat, true).held.stored > 0, in_fp32) << ggml_name(type);
    EXPECT_EQ(load(source, at::kBFloat16, true).held.stored > 0, in_bf16) << ggml_name(type);
  }
}

TEST(StoredWeights, AreDescribedWithTheirTypesAndBytes) {
  EXPECT_EQ(description({{GgmlType::q4_k, GgmlType::q6_k}, 100, 3 << 20}, "bf16"),
            "as stored (Q4_K, Q6_K; arithmetic in bf16), 3 MiB");
  EXPECT_EQ(description({{}, 0, 3 << 20}, "fp32"), "in fp32, 3 MiB");
}

}  // namespace stored_weights_test
}  // namespace zero
