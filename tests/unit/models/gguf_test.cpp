#include "models/families/families.h"
#include "models/formats/gguf_model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "models/formats/gguf/gguf_check.h"
#include "models/formats/gguf/gguf_layout.h"
#include "models/formats/gguf/gguf_rope.h"
#include "models/formats/gguf/tokenizer/gguf_vocabulary.h"
#include "models/formats/hf_weights.h"
#include "models/ggml_values.h"
#include "models/lora/adapted_weights.h"
#include "models/ops/rotary.h"
#include "models/weight_chunks.h"
#include "tests/unit/models/gguf_reader.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace gguf_test {

using test::GgufFile;
using ::testing::HasSubstr;
using testing::ThrowsMessage;

const std::string lora = ZERO_TEST_DATA "/tiny-lora";
const std::string tinyllama = ZERO_TEST_DATA "/tinyllama-chat";

struct Merged {
  std::shared_ptr<HfDirectory> directory = std::make_shared<HfDirectory>(lora + "/model");
  Model model = make_model(directory->config());
  MergedWeights weights{std::make_shared<HfWeights>(directory), open_adapter(lora + "/adapter", model)};

  at::Tensor whole(const TensorSpec& tensor) {
    const at::Tensor out = at::empty(tensor.shape, at::kFloat);
    weights.read(tensor, 0, tensor.numel(), out.view({-1}));
    return out;
  }
};

/// Weights that are all one value.
class Constant : public WeightSource {
 public:
  explicit Constant(double value) : value_(value) {}
  void check(const std::vector<TensorSpec>&) override {}
  void read(const TensorSpec&, std::int64_t, std::int64_t, const at::Tensor& out) override { out.fill_(value_); }

 private:
  double value_;
};

TEST(GgmlType, Q8RoundsHalvesAwayFromZeroAndKeepsZeros) {
  at::Tensor values = at::zeros({2, 32}, at::kFloat);
  values[0][0] = 127;  // scale 1
  const std::vector<float> halves{0.5F, -0.5F, 1.5F, -2.5F, 0.49999997F, 126.5F};
  for (std::size_t i = 0; i < halves.size(); ++i) values[0][static_cast<std::int64_t>(i) + 1] = halves[i];
  const at::Tensor bytes = to_ggml(values, GgmlType::q8_0);
  ASSERT_EQ(bytes.numel(), 2 * 34);
  const auto* block = bytes.const_data_ptr<std::uint8_t>();
  EXPECT_EQ(block[0] | block[1] << 8, 0x3C00);  // 1.0 in fp16
  const std::vector<int> expected{127, 1, -1, 2, -3, 0, 127};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(static_cast<std::int8_t>(block[2 + i]), expected[i]) << i;
  for (int i = 34; i < 68; ++i) EXPECT_EQ(block[i], 0);
}

TEST(GgmlType, Q8IsOffByHalfAScaleAtMost) {
  const at::Tensor values = at::randn({64, 32}, at::kFloat);
  const at::Tensor bytes = to_ggml(values, GgmlType::q8_0).view({64, 34});
  const at::Tensor scales = bytes.narrow(1, 0, 2).contiguous().view(at::kHalf).to(at::kFloat);
  const at::Tensor back = bytes.narrow(1, 2, 32).contiguous().view(at::kChar).to(at::kFloat) * scales;
  EXPECT_LT(((back - values).abs() / scales).max().item<double>(),
            0.5 + 127 * 0x1p-11);  // the scale itself is rounded to fp16
}

TEST(Gguf, RotatedPairsBecomeNeighbours) {
  const at::Tensor rows = at::arange(2 * 8, at::kFloat).view({16, 1});  // two heads of 8
  const at::Tensor expected = at::tensor({0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15}, at::kFloat);
  EXPECT_TRUE(neighbours_from_halves(rows, 8).view({-1}).equal(expected));
}

TEST(Gguf, RopeFactorsDivideTheFrequenciesOfTheDecoder) {
  ModelConfig config = preset_config("llama-tiny");
  config.head_dim = 64;
  config.rope_theta = 500000;
  EXPECT_TRUE(rope_factors(config).empty());
  config.rope_scaling = Llama3Scaling{32, 1, 4, 8192};
  ASSERT_EQ(rope_factors(config).size(), 1U);
  EXPECT_EQ(rope_factors(config).front().name, "rope_freqs.weight");
  const std::vector<float> factors = rope_factors(config).front().values;
  ASSERT_EQ(factors.size(), 32U);
  EXPECT_EQ(factors.front(), 1.0F);
  EXPECT_EQ(factors.back(), 32.0F);
  // at position 1 the angles are the frequencies
  Rotary plain(64, 500000, std::nullopt), scaled(64, 500000, config.rope_scaling);
  const Rotary::Table whole = plain.table(2, at::kDouble, at::kCPU), stretched = scaled.table(2, at::kDouble, at::kCPU);
  const at::Tensor ratio = at::atan2(whole.sin[1], whole.cos[1]) / at::atan2(stretched.sin[1], stretched.cos[1]);
  for (std::int64_t i = 0; i < 32; ++i)
    EXPECT_NEAR(ratio[i].item<double>(), factors[static_cast<std::size_t>(i)],
                1e-5 * factors[static_cast<std::size_t>(i)]);
}

TEST(Gguf, HoldsTheMergedModelUnderTheNamesOfLlamaCpp) {
  Merged merged;
  const TemporaryFolder folder;
  write_gguf(folder / "a.gguf", merged.model, merged.weights, {.type = GgmlType::f32, .name = "tiny"});
  const GgufFile file(folder / "a.gguf");
  EXPECT_EQ(file.texts.at("general.architecture"), "llama");
  EXPECT_EQ(file.texts.at("general.name"), "tiny");
  EXPECT_EQ(file.texts.at("tokenizer.ggml.model"), "no_vocab");
  const std::map<std::string, double> numbers{{"general.file_type", 0},           {"general.quantization_version", 2},
                                              {"llama.context_length", 128},      {"llama.embedding_length", 64},
                                              {"llama.block_count", 3},           {"llama.feed_forward_length", 172},
                                              {"llama.attention.head_count", 4},  {"llama.attention.head_count_kv", 2},
                                              {"llama.rope.dimension_count", 16}, {"llama.rope.freq_base", 10000},
                                              {"llama.vocab_size", 512}};
  for (const auto& [key, value] : numbers) EXPECT_EQ(file.numbers.at(key), value) << key;
  const auto tensors = tensors_of(merged.model);
  const GgufLayout layout(merged.model.config);
  const auto gguf_name = [&](const std::string& name) { return layout.place(name).name; };
  EXPECT_EQ(file.tensors.size(), tensors.size());
  for (const TensorSpec& tensor : tensors) {
    at::Tensor expected = merged.whole(tensor);
    if (tensor.name.find("q_proj") != std::string::npos || tensor.name.find("k_proj") != std::string::npos)
      expected = expected.view({-1, 2, 8, 64}).swapaxes(1, 2).reshape(tensor.shape);
    EXPECT_TRUE(file.values(gguf_name(tensor.name)).equal(expected)) << tensor.name;
    EXPECT_EQ(file.tensors.at(gguf_name(tensor.name)).offset % 32, 0U);
  }
  EXPECT_EQ(gguf_name("model.layers.21.self_attn.o_proj.weight"), "blk.21.attn_output.weight");
  EXPECT_EQ(gguf_name("model.layers.0.post_attention_layernorm.weight"), "blk.0.ffn_norm.weight");
}

TEST(Gguf, VectorsStayInFp32AndRowsWithoutWholeBlocksInFp16) {
  Merged merged;
  const TemporaryFolder folder;
  write_gguf(folder / "a.gguf", merged.model, merged.weights, {.type = GgmlType::q8_0});
  const GgufFile file(folder / "a.gguf");
  EXPECT_EQ(file.numbers.at("general.file_type"), 7);
  EXPECT_EQ(file.tensors.at("blk.0.attn_norm.weight").type, 0U);
  EXPECT_EQ(file.tensors.at("output_norm.weight").type, 0U);
  EXPECT_EQ(file.tensors.at("blk.0.ffn_gate.weight").type, 8U);
  EXPECT_EQ(file.tensors.at("blk.0.ffn_down.weight").type, 1U);  // rows of 172
  const at::Tensor up = merged.whole({"model.layers.2.mlp.up_proj.weight", {172, 64}});
  const at::Tensor bytes = to_ggml(up, GgmlType::q8_0);
  const std::string stored = file.bytes("blk.2.ffn_up.weight", static_cast<std::size_t>(bytes.numel()));
  EXPECT_EQ(std::memcmp(stored.data(), bytes.const_data_ptr(), stored.size()), 0);
}

TEST(Gguf, ATiedHeadIsNotWrittenAndTheLongRopeIs) {
  ModelConfig config = preset_config("llama-15m");
  config.vocab_size = 64;
  config.num_hidden_layers = 1;
  config.rope_scaling = Llama3Scaling{};
  const Model model = make_model(config);
  Constant weights(0.25);
  const TemporaryFolder folder;
  write_gguf(folder / "a.gguf", model, weights, {.type = GgmlType::bf16});
  const GgufFile file(folder / "a.gguf");
  EXPECT_FALSE(file.tensors.contains("output.weight"));
  EXPECT_EQ(file.tensors.at("token_embd.weight").type, 30U);
  EXPECT_EQ(file.values("rope_freqs.weight").numel(), config.head_dim / 2);
  EXPECT_EQ(file.values("blk.0.ffn_up.weight").sum().item<double>(), 0.25 * 768 * 288);
}

TEST(Gguf, ABrokenOrTooLargeValueLeavesNoFile) {
  ModelConfig config = preset_config("llama-tiny");
  const Model model = make_model(config);
  const TemporaryFolder folder;
  Constant large(1e6), broken(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT([&] { write_gguf(folder / "a.gguf", model, large, {.type = GgmlType::f16}); },
              ThrowsMessage<InputError>(HasSubstr("model.embed_tokens.weight")));
  EXPECT_THAT([&] { write_gguf(folder / "a.gguf", model, broken, {.type = GgmlType::f32}); },
              ThrowsMessage<InputError>(HasSubstr("not finite")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_NO_THROW(write_gguf(folder / "a.gguf", model, large, {.type = GgmlType::bf16}));
}

TEST(GgufVocabulary, IsTheTokenizersWithRowsThatHaveNoTokenNamed) {
  const GgufVocabulary vocabulary = gguf_vocabulary(tinyllama, 32002);
  ASSERT_EQ(vocabulary.tokens.size(), 32002U);
  EXPECT_EQ(vocabulary.tokens[0], "<unk>");
  EXPECT_EQ(vocabulary.types[0], 2);
  EXPECT_EQ(vocabulary.types[1], 3);
  EXPECT_EQ(vocabulary.tokens[13], "<0x0A>");
  EXPECT_EQ(vocabulary.types[13], 6);
  EXPECT_EQ(vocabulary.tokens[15043], "\u2581Hello");
  EXPECT_EQ(vocabulary.types[15043], 1);
  EXPECT_EQ(vocabulary.scores[260], -1);
  EXPECT_EQ(vocabulary.tokens[32001], "[PAD32001]");
  EXPECT_EQ(vocabulary.types[32001], 5);
  EXPECT_THROW(gguf_vocabulary(tinyllama, 512), InputError);
}

TEST(GgufVocabulary, AddedTokensAreControlOrUserDefinedAsTheFolderSays) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(tinyllama + "/tokenizer.model", folder / "tokenizer.model");
  write_text_file(
      folder / "tokenizer_config.json",
      R"({"added_tokens_decoder": {"1": {"content": "<s>", "special": true}, "32000": {"content": "<|im_end|>", "special": false},
                      "32001": {"content": "a\u2581b", "special": false}, "32002": {"content": "[X]", "special": true}}})");
  const GgufVocabulary vocabulary = gguf_vocabulary(folder.path(), 32003);
  EXPECT_EQ(vocabulary.types[32000], 3);
  EXPECT_EQ(vocabulary.types[32001], 4);
  EXPECT_EQ(vocabulary.tokens[32001], "a b");
  EXPECT_EQ(vocabulary.types[32002], 3);
  EXPECT_EQ(vocabulary.scores[32002], -1000);
  EXPECT_EQ(gguf_vocabulary(folder.path(), 32000).tokens.size(), 32000U);  // added tokens without a row are left out
}

TEST(WeightChunks, AreWholeGroupsOfRowsInOrder) {
  Merged merged;
  const TensorSpec tensor{"model.layers.1.self_attn.q_proj.weight", {64, 64}};
  std::vector<at::Tensor> pieces;
  read_in_chunks(merged.weights, tensor, {.rows_together = 16, .max_elements = 40 * 64},
                 [&](const at::Tensor& piece) { pieces.push_back(piece.clone()); });
  ASSERT_EQ(pieces.size(), 2U);  // 32 rows each
  EXPECT_EQ(pieces[0].size(0), 32);
  EXPECT_LT((at::cat(pieces) - merged.whole(tensor)).abs().max().item<double>(), 1e-6);
}

}  // namespace gguf_test
}  // namespace zero
