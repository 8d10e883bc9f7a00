// GGUF files of every family: llama.cpp's names, keys and forms, what it does not compute refused by name, and the same
// model read back.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/json_text.h"
#include "models/families/config_json.h"
#include "models/families/families.h"
#include "models/formats/gguf/gguf_check.h"
#include "models/formats/gguf/gguf_config.h"
#include "models/formats/gguf/gguf_layout.h"
#include "models/formats/gguf/gguf_weights.h"
#include "models/formats/gguf_model.h"
#include "models/formats/hf_weights.h"
#include "tests/unit/message_of.h"
#include "tests/unit/models/gguf_reader.h"
#include "tests/unit/models/small_model.h"
#include "tests/unit/temporary_folder.h"

namespace zero::test {
namespace gguf_families_test {

using nlohmann::json;
using ::testing::HasSubstr;

json golden_json(const std::string& name) {
  return json::parse(read_text_file(ZERO_TEST_DATA "/families/" + name + "/model/config.json"));
}

/// Changes by which a golden model becomes one that llama.cpp computes.
struct Case {
  const char *name, *architecture;
  json changed = json::object();
};

ModelConfig config_of(const Case& which) {
  json file = golden_json(which.name);
  for (const auto& [key, value] : which.changed.items()) file[key] = value;
  return parse_model_config(file.dump(), which.name);
}

/// Distinct values for every position of every tensor, exact in F16.
class Numbered : public WeightSource {
 public:
  void check(const std::vector<TensorSpec>&) override {}
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override {
    const auto seed = static_cast<std::int64_t>(std::hash<std::string>{}(tensor.name) % 1021);
    out.copy_((at::arange(begin, begin + count) * 37 + seed).remainder(2039).to(at::kFloat) / 1024 - 0.5);
  }
  at::Tensor whole(const TensorSpec& tensor) {
    const at::Tensor out = at::empty(tensor.shape, at::kFloat);
    read(tensor, 0, tensor.numel(), out.view({-1}));
    return out;
  }
};

class GgufFamily : public ::testing::TestWithParam<Case> {
 protected:
  void write(const ModelConfig& config, GgmlType type = GgmlType::f32) {
    write_gguf(path_, make_model(config), weights_, {.type = type, .name = "small"});
  }
  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.gguf";
  Numbered weights_;
};

TEST_P(GgufFamily, HasTheArchitecturesNameAndKeys) {
  const ModelConfig config = config_of(GetParam());
  write(config);
  const GgufFile file(path_);
  const std::string prefix = GetParam().architecture + std::string(".");
  EXPECT_EQ(file.texts.at("general.architecture"), GetParam().architecture);
  EXPECT_EQ(file.numbers.at(prefix + "block_count"), config.num_hidden_layers);
  EXPECT_EQ(file.numbers.at(prefix + "embedding_length"), config.hidden_size);
  EXPECT_EQ(file.numbers.at(prefix + "feed_forward_length"), config.intermediate_size);
  EXPECT_EQ(file.numbers.at(prefix + "attention.head_count_kv"), config.num_key_value_heads);
  EXPECT_EQ(file.numbers.at(prefix + "context_length"), config.max_position_embeddings);
  const char* eps =
      config.norm == NormKind::layer ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  EXPECT_FLOAT_EQ(float(file.numbers.at(prefix + eps)), float(config.rms_norm_eps));
  EXPECT_EQ(file.numbers.contains(prefix + "rope.freq_base"), !config.learned_positions);
}

/// The model's tensors in the file, by rules that this test states anew.
TEST_P(GgufFamily, HoldsEveryTensorInLlamaCppsForm) {
  const ModelConfig config = config_of(GetParam());
  const Model model = make_model(config);
  write(config);
  const GgufFile file(path_);
  const GgufLayout layout(config);
  for (const TensorSpec& tensor : tensors_of(model)) {
    at::Tensor expected = weights_.whole(tensor);
    const std::string there = layout.place(tensor.name).name;
    const bool rotates = std::set<std::string>{"llama", "smollm3", "mistral", "granite"}.contains(config.model_type);
    const bool q_or_k = there.find("attn_q.") != std::string::npos || there.find("attn_k.") != std::string::npos;
    if (rotates && q_or_k)
      expected = expected.view({-1, 2, config.head_dim / 2, expected.dim() > 1 ? expected.size(1) : 1})
                     .swapaxes(1, 2)
                     .reshape(tensor.shape);
    if (config.model_type == "gemma3_text" && there.ends_with("_norm.weight")) expected = expected + 1;
    const bool conv1d =
        config.model_type == "gpt2" && tensor.name.find(".c_") != std::string::npos && tensor.shape.size() == 2;
    if (conv1d) expected = expected.t();
    EXPECT_TRUE(file.values(there).equal(expected)) << tensor.name << " as " << there;
  }
}

TEST_P(GgufFamily, ComesBackAsTheModelThatItWas) {
  const ModelConfig config = config_of(GetParam());
  write(config);
  const GgufModel read = open_gguf_model(path_);
  Model here = make_model(config), back = make_model(read.config);
  hold_parameters(here, at::kFloat);
  hold_parameters(back, at::kFloat);
  load_parameters(here, weights_);
  load_parameters(back, *read.weights);
  share_with_borrowers(here);
  share_with_borrowers(back);
  const std::int64_t length = std::min<std::int64_t>(12, config.max_position_embeddings);
  const at::Tensor ids = at::arange(length).view({1, length});
  EXPECT_LT(deviation(run_logits(back, {ids, {}, {}, {}}), run_logits(here, {ids, {}, {}, {}})), 2e-6);
  const TemporaryFolder again;
  write_gguf(again / "b.gguf", back, *read.weights, {.type = GgmlType::f32, .name = "small"});
  const std::string first = read_text_file(path_, 1 << 26), second = read_text_file(again / "b.gguf", 1 << 26);
  EXPECT_TRUE(first == second);
}

/// transformers refuses 16.0 where a field is an integer.
TEST_P(GgufFamily, IntegersOfTheConfigurationComeBackAsIntegers) {
  const ModelConfig config = config_of(GetParam());
  write(config);
  const json here = json::parse(format_model_config(config, "float32")),
             back = json::parse(format_model_config(open_gguf_model(path_).config, "float32"));
  for (const auto& [name, value] : here.items())
    if (value.is_number_integer() && back.contains(name))
      EXPECT_TRUE(!back[name].is_number_float()) << name << " " << back[name];
}

TEST_P(GgufFamily, PartsOfATensorAreThoseOfTheWhole) {
  const ModelConfig config = config_of(GetParam());
  write(config, GgmlType::f16);
  const GgufModel read = open_gguf_model(path_);
  for (const TensorSpec& tensor : tensors_of(make_model(config))) {
    const at::Tensor whole = at::empty({tensor.numel()}), expected = weights_.whole(tensor).view({-1});
    read.weights->read(tensor, 0, tensor.numel(), whole);
    EXPECT_TRUE(whole.equal(expected)) << tensor.name;
    const std::int64_t begin = tensor.numel() / 3, count = tensor.numel() / 2;
    const at::Tensor part = at::empty({count});
    read.weights->read(tensor, begin, count, part);
    EXPECT_TRUE(part.equal(expected.narrow(0, begin, count))) << tensor.name;
  }
}

const Case cases[] = {
    {"llama-linear-biases", "llama", {{"hidden_act", "silu"}}},
    {"mistral-window", "llama", {{"max_position_embeddings", 5}}},
    {"qwen2-yarn", "qwen2", {{"max_window_layers", 3}, {"layer_types", nullptr}, {"head_dim", 8}}},
    {"qwen3", "qwen3"},
    {"phi3-longrope", "phi3"},
    {"gemma3",
     "gemma3",
     {{"query_pre_attn_scalar", 16}, {"layer_types", {"sliding_attention", "full_attention", "sliding_attention"}}}},
    {"olmo2", "olmo2"},
    {"smollm3", "smollm3", {{"no_rope_layers", {1, 1, 1}}}},
    {"gpt2", "gpt2"},
    {"granite", "granite"},
    {"starcoder2", "starcoder2", {{"sliding_window", nullptr}}}};

INSTANTIATE_TEST_SUITE_P(Families, GgufFamily, ::testing::ValuesIn(cases), [](const auto& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

std::string refusal(const char* name, const json& changed) {
  return message_of<InputError>([&] { check_gguf(config_of({name, "", changed})); });
}

TEST(GgufCheck, RefusesByNameWhatLlamaCppDoesNotCompute) {
  EXPECT_THAT(refusal("llama-linear-biases", {}), HasSubstr("activation"));
  EXPECT_THAT(refusal("mistral-window", {}), HasSubstr("sees 5 tokens (sliding_window) in a context of 64"));
  EXPECT_THAT(refusal("mistral-window", {}), HasSubstr("set max_position_embeddings = 5"));
  EXPECT_THAT(refusal("qwen2-yarn", {{"max_window_layers", 3}, {"layer_types", nullptr}}), HasSubstr("head_dim"));
  EXPECT_THAT(refusal("qwen3", {{"attention_bias", true}}), HasSubstr("biases"));
  EXPECT_THAT(refusal("qwen3", {{"rope_parameters",
                                 {{"rope_type", "llama3"},
                                  {"rope_theta", 1e4},
                                  {"factor", 8.0},
                                  {"low_freq_factor", 1.0},
                                  {"high_freq_factor", 4.0},
                                  {"original_max_position_embeddings", 64}}}}),
              HasSubstr("rope_type \"llama3\""));
  EXPECT_THAT(refusal("gemma3", {{"query_pre_attn_scalar", 24}}), HasSubstr("scores of layer 0"));
  EXPECT_THAT(refusal("gemma3", {{"query_pre_attn_scalar", 16},
                                 {"layer_types", {"full_attention", "sliding_attention", "sliding_attention"}}}),
              HasSubstr("layer_types"));
  EXPECT_THAT(refusal("gemma3", {{"query_pre_attn_scalar", 16},
                                 {"layer_types", {"full_attention", "full_attention", "full_attention"}}}),
              HasSubstr("layer_types"));
  EXPECT_THAT(refusal("smollm3", {{"no_rope_layers", {1, 0, 1}}}), HasSubstr("layer 1 without rope"));
  EXPECT_THAT(refusal("gpt2", {{"activation_function", "gelu"}}), HasSubstr("activation"));
  EXPECT_THAT(refusal("gpt2", {{"scale_attn_by_inverse_layer_idx", true}}), HasSubstr("scores of layer 1"));
  EXPECT_THAT(refusal("qwen3", {{"attention_bias", true}}), HasSubstr("model_type \"qwen3\""));
}

TEST(GgufFamilies, FactorsOfGraniteHaveLlamaCppsKeys) {
  const TemporaryFolder folder;
  Numbered weights;
  write_gguf(folder / "a.gguf", make_model(config_of({"granite", ""})), weights, {.type = GgmlType::f32, .name = "a"});
  const GgufFile file(folder / "a.gguf");
  for (const auto& [key, value] : {std::pair("embedding_scale", 12.0), std::pair("residual_scale", 0.22),
                                   std::pair("attention.scale", 0.3), std::pair("logit_scale", 3.0)})
    EXPECT_FLOAT_EQ(float(file.numbers.at(std::string("granite.") + key)), float(value)) << key;
}

TEST(GgufCheck, RefusesAFamilyWithoutARowByWhatIsMissingHere) {
  const Family granite{"granitemoe", "GraniteMoeForCausalLM", nullptr};
  const std::string said = message_of<InputError>([&] { require_gguf(granite); });
  EXPECT_THAT(said, HasSubstr("granitemoe"));
  EXPECT_THAT(said, HasSubstr("zero does not know its form in llama.cpp"));
  EXPECT_EQ(&require_gguf(family_of("qwen3")), &family_of("qwen3"));
}

TEST(GgufCheck, RefusesPartsThatTheRowDoesNotName) {
  const auto said = [](const char* name, const json& fields, auto change) {
    ModelConfig config = config_of({name, "", fields});
    change(config);
    return message_of<InputError>([&] { check_gguf(config); });
  };
  EXPECT_THAT(said("qwen3", {}, [](ModelConfig& config) { config.embedding_scale = 12; }),
              HasSubstr("embeddings times 12"));
  EXPECT_THAT(said("qwen3", {}, [](ModelConfig& config) { config.residual_scale = 0.5; }),
              HasSubstr("residual stream times 0.5"));
  EXPECT_THAT(said("qwen3", {}, [](ModelConfig& config) { config.logits_scale = 0.5; }), HasSubstr("logits times 0.5"));
  EXPECT_THAT(said("granite", {}, [](ModelConfig& config) { config.layers[1].scale = 0.5; }),
              HasSubstr("scores scaled differently by layer"));
  EXPECT_THAT(said("starcoder2", {{"sliding_window", nullptr}}, [](ModelConfig& config) { config.mlp_bias = false; }),
              HasSubstr("projections without biases"));
  EXPECT_THAT(said("qwen3", {}, [](ModelConfig& config) { config.norm = NormKind::layer; }),
              HasSubstr("norms of this kind"));
  EXPECT_THAT(said("qwen3", {}, [](ModelConfig& config) { config.head_norm = HeadNorm::all_heads; }),
              HasSubstr("norms of queries"));
  EXPECT_THAT(said("qwen3", {}, [](ModelConfig& config) { config.gated = false; }), HasSubstr("without a gate"));
  EXPECT_THAT(said("qwen3", {}, [](ModelConfig& config) { config.learned_positions = true; }),
              HasSubstr("learned positions"));
  const json gemma = cases[5].changed;
  EXPECT_THAT(said("gemma3", gemma, [](ModelConfig& config) { config.embedding_scale = 1; }),
              HasSubstr("embeddings times 1,"));
}

TEST(GgufFamilies, HaveACaseForEveryRow) {
  std::set<std::string> tried;
  for (const Case& one : cases) tried.insert(config_of(one).model_type);
  for (const Family* family : model_families())
    if (!family->gguf.name.empty()) EXPECT_EQ(tried.count(family->model_type), 1u) << family->model_type;
}

TEST(GgufCheck, FindsThePatternOfWindows) {
  const auto pattern = [](const std::vector<int>& windows) {
    ModelConfig config;
    config.num_hidden_layers = std::int64_t(windows.size());
    for (const int window : windows) config.layers.push_back({LayerAttention::Rope::local, window, 0});
    return window_pattern(config);
  };
  EXPECT_EQ(pattern({4, 4, 4, 4, 4, 0, 4}), 6);
  EXPECT_EQ(pattern({4, 4, 4}), 6);
  EXPECT_EQ(pattern({4, 4, 4, 4, 4, 4, 4}), 8);
  EXPECT_EQ(pattern({4, 0, 4, 0}), 2);
  EXPECT_EQ(pattern({0, 4}), std::nullopt);
  EXPECT_EQ(pattern({0, 0}), std::nullopt);
}

TEST(GgufFamilies, ATiedHeadIsWrittenWhereLlamaCppNeedsOne) {
  const TemporaryFolder folder;
  Numbered weights;
  const ModelConfig config = config_of({"olmo2", "", {{"tie_word_embeddings", true}}});
  write_gguf(folder / "a.gguf", make_model(config), weights, {.type = GgmlType::f32});
  const GgufFile file(folder / "a.gguf");
  EXPECT_TRUE(file.values("output.weight").equal(file.values("token_embd.weight")));
}

TEST(GgufFamilies, WindowsAndLocalRopeOfGemma) {
  const TemporaryFolder folder;
  Numbered weights;
  const ModelConfig config = config_of(cases[5]);
  write_gguf(folder / "a.gguf", make_model(config), weights, {.type = GgmlType::f32});
  const GgufFile file(folder / "a.gguf");
  EXPECT_EQ(file.numbers.at("gemma3.attention.sliding_window"), 4);
  EXPECT_EQ(file.numbers.at("gemma3.attention.sliding_window_pattern"), 2);
  EXPECT_EQ(file.numbers.at("gemma3.rope.freq_base_swa"), 10000);
  EXPECT_EQ(file.texts.at("gemma3.rope.scaling.type"), "linear");
  EXPECT_EQ(file.numbers.at("gemma3.rope.scaling.factor"), 8);
}

TEST(GgufFamilies, FactorsOfLongrope) {
  const TemporaryFolder folder;
  Numbered weights;
  const ModelConfig config = config_of({"phi3-longrope", ""});
  write_gguf(folder / "a.gguf", make_model(config), weights, {.type = GgmlType::f32});
  const GgufFile file(folder / "a.gguf");
  EXPECT_EQ(file.values("rope_factors_long.weight")[5].item<double>(), 4.0);
  EXPECT_EQ(file.values("rope_factors_short.weight")[0].item<double>(), 1.0);
  EXPECT_EQ(file.numbers.at("phi3.rope.scaling.original_context_length"), 8);
  EXPECT_EQ(file.numbers.at("phi3.rope.dimension_count"), 12);
}

}  // namespace gguf_families_test
}  // namespace zero::test
