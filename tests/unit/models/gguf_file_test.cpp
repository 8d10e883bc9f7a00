// Reads GGUF files: written values come back, blocks unchanged. Files that break a rule are refused, and random damage
// never ends the program.
#include "models/formats/gguf/gguf_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/json_text.h"
#include "base/random.h"
#include "models/families/config_json.h"
#include "models/families/families.h"
#include "models/formats/gguf/gguf_config.h"
#include "models/formats/gguf/gguf_weights.h"
#include "models/formats/gguf_model.h"
#include "models/formats/gguf_writer.h"
#include "models/formats/hf_weights.h"
#include "models/ggml_values.h"
#include "models/initial_weights.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using ::testing::HasSubstr;

ModelConfig small() {
  ModelConfig config = preset_config("llama-tiny");
  config.vocab_size = 64;
  config.hidden_size = 64;
  config.intermediate_size = 96;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 16;
  return config;
}

at::Tensor values_of(WeightSource& weights, const TensorSpec& tensor, std::int64_t begin, std::int64_t count) {
  const at::Tensor out = at::empty({count}, at::kFloat);
  weights.read(tensor, begin, count, out);
  return out;
}

/// The text of an InputError; empty if none.
std::string refusal_by(const std::function<void()>& body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

class GgufRoundTrip : public ::testing::TestWithParam<GgmlType> {
 protected:
  GgufRoundTrip() { write_gguf(path_, model_, drawn_, {.type = GetParam()}); }
  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.gguf";
  Model model_ = make_model(small());
  RandomWeights drawn_{model_, 3};
};

TEST_P(GgufRoundTrip, GivesTheConfigurationBack) {
  const ModelConfig config = open_gguf_model(path_).config;
  EXPECT_EQ(format_model_config(config, "float32"), format_model_config(small(), "float32"));
}

TEST_P(GgufRoundTrip, GivesValuesAndBlocksInTheOrderOfHuggingFace) {
  const GgufModel read = open_gguf_model(path_);
  read.weights->check(tensors_of(model_));
  for (const TensorSpec& tensor : tensors_of(model_)) {
    const GgmlType type = tensor.shape.size() > 1 ? GetParam() : GgmlType::f32;
    ASSERT_EQ(read.weights->type_of(tensor), type);
    const at::Tensor bytes = to_ggml(values_of(drawn_, tensor, 0, tensor.numel()), type),
                     want = at::empty({tensor.numel()}, at::kFloat), blocks = at::empty_like(bytes);
    from_ggml(bytes.const_data_ptr<std::uint8_t>(), type, want);
    EXPECT_TRUE(values_of(*read.weights, tensor, 0, tensor.numel()).equal(want)) << tensor.name;
    read.weights->read_as(tensor, type, 0, tensor.numel(), blocks);
    EXPECT_TRUE(blocks.equal(bytes)) << tensor.name;
    for (const auto& [begin, count] : {std::pair<std::int64_t, std::int64_t>{1, 3}, {31, 33}, {5, 59}})
      EXPECT_TRUE(values_of(*read.weights, tensor, begin, count).equal(want.narrow(0, begin, count)))
          << tensor.name << " from " << begin;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GgufRoundTrip,
                         ::testing::Values(GgmlType::f32, GgmlType::f16, GgmlType::bf16, GgmlType::q8_0,
                                           GgmlType::q4_0),
                         [](const auto& info) { return ggml_name(info.param); });

TEST(GgufWeights, RefuseTensorsThatNothingAsksFor) {
  const TemporaryFolder folder;
  const Model model = make_model(small());
  RandomWeights drawn(model, 3);
  write_gguf(folder / "a.gguf", model, drawn, {});
  std::vector<TensorSpec> fewer = tensors_of(model);
  fewer.pop_back();
  EXPECT_THAT(message_of<InputError>([&] { open_gguf_model(folder / "a.gguf").weights->check(fewer); }),
              HasSubstr("--allow-unused"));
  open_gguf_model(folder / "a.gguf", UnusedTensors::allow).weights->check(fewer);
}

TEST(GgufConfig, FindsTheScalingOfLlama3) {
  const TemporaryFolder folder;
  ModelConfig config = small();
  config.rope_theta = 500000;
  for (const double factor : {8.0, 32.0}) {
    config.rope_scaling = Llama3Scaling{factor};
    const Model model = make_model(config);
    RandomWeights weights(model, 0);
    write_gguf(folder / "a.gguf", model, weights, {});
    EXPECT_EQ(format_model_config(open_gguf_model(folder / "a.gguf").config, "float32"),
              format_model_config(config, "float32"));
  }
}

/// A file of one tensor, with metadata that `change` may add to.
std::string file_with(const TemporaryFolder& folder, const std::function<void(GgufMetadata&)>& change,
                      const std::string& tensor = "token_embd.weight") {
  GgufMetadata metadata;
  change(metadata);
  const std::string path = folder / "b.gguf";
  GgufWriter writer(path, metadata, {{tensor, {2, 32}, GgmlType::f32}});
  writer.append(at::zeros({2, 32}));
  writer.finish();
  return path;
}

void name_llama(GgufMetadata& metadata) {
  metadata.add("general.architecture", "llama");
  for (const char* key : {"context_length", "embedding_length", "block_count", "feed_forward_length"})
    metadata.add_uint32(std::string("llama.") + key, 32);
  metadata.add_uint32("llama.attention.head_count", 2);
  metadata.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5);
}

std::string refusal_of(const std::function<void(GgufMetadata&)>& change) {
  const TemporaryFolder folder;
  return refusal_by([&] { config_json_of(GgufFile(file_with(folder, change))); });
}

TEST(GgufConfig, RefusesByNameWhatIsNotUnderstood) {
  EXPECT_EQ(refusal_of(name_llama), "");
  EXPECT_THAT(refusal_of([](GgufMetadata& m) { m.add("general.architecture", "mamba"); }), HasSubstr("\"mamba\""));
  EXPECT_THAT(refusal_of([](GgufMetadata& m) {
                m.add("general.architecture", "llama");
                m.add("general.type", "adapter");
              }),
              HasSubstr("no model"));
  const auto with = [](const auto& more) {
    return [more](GgufMetadata& m) {
      name_llama(m);
      more(m);
    };
  };
  EXPECT_THAT(refusal_of(with([](GgufMetadata& m) { m.add_uint32("llama.expert_count", 8); })),
              HasSubstr("llama.expert_count = 8"));
  EXPECT_THAT(refusal_of(with([](GgufMetadata& m) { m.add_uint32("llama.attention.sliding_window", 8); })),
              HasSubstr("llama.attention.sliding_window"));
  EXPECT_THAT(refusal_of(with([](GgufMetadata& m) { m.add("llama.rope.scaling.type", "dynamic"); })),
              HasSubstr("dynamic"));
  EXPECT_THAT(refusal_of([](GgufMetadata& m) { m.add("general.architecture", "llama"); }),
              HasSubstr("llama.context_length is missing"));
}

TEST(GgufWeights, RefusesTensorsWithoutAPlace) {
  const TemporaryFolder folder;
  const auto file = std::make_shared<GgufFile>(file_with(folder, name_llama, "blk.0.attn_q.bias"));
  GgufWeights weights(file, small());
  EXPECT_THAT(refusal_by([&] { weights.check({}); }), HasSubstr("attn_q.bias"));
}

class BrokenGguf : public ::testing::Test {
 protected:
  BrokenGguf() {
    const Model model = make_model(small());
    RandomWeights weights(model, 3);
    write_gguf(path_, model, weights, {.type = GgmlType::q8_0});
    content_ = read_text_file(path_, 1 << 30);
  }
  /// The error from reading a file of these bytes; empty if it is read.
  std::string refusal_of(const std::string& content) {
    folder_.write("a.gguf", content);
    return refusal_by([&] { config_json_of(GgufFile(path_)); });
  }
  /// With the type of the first tensor of that name replaced.
  std::string retyped(const std::string& name, std::uint32_t type) {
    std::string changed = content_;
    std::memcpy(changed.data() + changed.find(name) + name.size() + 4 + 2 * 8, &type, 4);
    return changed;
  }
  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.gguf", content_;
};

TEST_F(BrokenGguf, IsRefusedWhereverItIsCutShort) {
  for (std::size_t length = 0; length < content_.size(); length += length < 4000 ? 7 : 1009)
    EXPECT_THAT(refusal_of(content_.substr(0, length)), HasSubstr("a.gguf")) << length;
  EXPECT_EQ(refusal_of(content_), "");
}

TEST_F(BrokenGguf, NamesTheTypeThatIsNotRead) {
  EXPECT_THAT(refusal_of(retyped("blk.1.attn_v.weight", 19)),
              ::testing::AllOf(HasSubstr("attn_v"), HasSubstr("IQ1_S"), HasSubstr("Q4_K, Q5_K")));
  EXPECT_THAT(refusal_of(retyped("blk.1.attn_v.weight", 77)), HasSubstr("type 77"));
  std::string other = content_;
  other[4] = 1;
  EXPECT_THAT(refusal_of(other), HasSubstr("version 1"));
  other.replace(4, 4, std::string("\0\0\0\3", 4));
  EXPECT_THAT(refusal_of(other), HasSubstr("big-endian"));
}

// A file of a type has the sizes and offsets of its blocks.
TEST_F(BrokenGguf, TypesWithOtherSizesAreRefused) {
  for (const GgmlType type : ggml_types()) {
    const std::string changed = retyped("blk.1.attn_v.weight", std::uint32_t(type));
    EXPECT_EQ(refusal_of(changed).empty(), changed == content_) << ggml_name(type);
  }
}

TEST_F(BrokenGguf, MutatedAtRandomIsReadOrRefused) {
  SplitMix64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string changed = content_;
    for (int i = 0; i < 4; ++i) changed[random.next() % 3000] = char(random.next());
    (void)refusal_of(changed);
  }
}

}  // namespace
}  // namespace zero
