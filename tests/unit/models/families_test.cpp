// Every family: what its config.json may say, and that documents in a row, caches and padding change no result. Its
// values are compared with transformers' by tests/sim/golden_test.cpp.
#include "models/families/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json_text.h"
#include "models/families/config_json.h"
#include "models/families/decoder_fields.h"
#include "models/generate/generator.h"
#include "models/lora/lora.h"
#include "tests/golden_families.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

using ::testing::HasSubstr;

nlohmann::json golden_json(const std::string& name) {
  return nlohmann::json::parse(read_text_file(ZERO_TEST_DATA "/families/" + name + "/model/config.json"));
}

ModelConfig golden_config(const std::string& name) { return parse_model_config(golden_json(name).dump(), name); }

std::string refusal(const std::string& name, const char* field, const nlohmann::json& value) {
  nlohmann::json file = golden_json(name);
  file[field] = value;
  try {
    parse_model_config(file.dump(), name + "/config.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

at::Tensor some_tokens(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randint(72, shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kLong);
}

class Family : public ::testing::TestWithParam<std::string> {};

TEST_P(Family, WritesItsConfigurationSoThatItIsReadAgain) {
  const ModelConfig config = golden_config(GetParam());
  const std::string written = format_model_config(config, "float32");
  EXPECT_EQ(format_model_config(parse_model_config(written, "x"), "float32"), written);
  const auto file = nlohmann::json::parse(written);
  EXPECT_EQ(file["architectures"], golden_json(GetParam())["architectures"]);
}

TEST_P(Family, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THAT(refusal(GetParam(), "clip_qkv", 8.0), HasSubstr("clip_qkv"));
  EXPECT_THAT(refusal(GetParam(), "attn_logit_softcapping", 50.0), HasSubstr("attn_logit_softcapping"));
  EXPECT_THAT(refusal(GetParam(), "quantization_config", {{"bits", 4}}), HasSubstr("quantization_config"));
  EXPECT_THAT(refusal(GetParam(), "num_experts", 8), HasSubstr("num_experts"));
  EXPECT_THAT(refusal(GetParam(), "hidden_dropout", 0.1), HasSubstr("hidden_dropout"));
  EXPECT_EQ(refusal(GetParam(), "logits_scaling", 1.0), "accepted");
  EXPECT_EQ(refusal(GetParam(), "a_note_of_somebody", "kept"), "accepted");
}

/// Documents of 9 and 7 tokens in one row against each in a row of its own.
TEST_P(Family, PackedEqualsSeparate) {
  Model model = random_model(golden_config(GetParam()));
  const at::Tensor ids = some_tokens({1, 16}, 3), targets = some_tokens({1, 16}, 4);
  Batch packed{ids, targets, at::zeros({1, 16}, at::kLong), at::zeros({1, 16}, at::kInt)};
  at::Tensor loss = at::zeros({}, at::kDouble);
  for (const auto& [begin, size] : {std::pair(0, 9), std::pair(9, 7)}) {
    Batch alone{ids.narrow(1, begin, size), targets.narrow(1, begin, size), {}, {}};
    packed.positions.narrow(1, begin, size).copy_(at::arange(size));
    packed.documents.narrow(1, begin, size).fill_(begin);
    loss = loss + run_loss(model, alone);
    const at::Tensor logits = run_logits(model, alone);
    EXPECT_LT(deviation(run_logits(model, packed).narrow(1, begin, size), logits), 1e-11) << begin;
  }
  const auto together = gradients(model, run_loss(model, packed)), separate = gradients(model, loss);
  for (const auto& [name, gradient] : together) {
    const double largest = separate.at(name).abs().max().item<double>();
    EXPECT_LT((gradient - separate.at(name)).abs().max().item<double>(), 1e-10 * std::max(largest, 1.0)) << name;
  }
}

TEST_P(Family, IncrementalEqualsFull) {
  ModelConfig config = golden_config(GetParam());
  if (config.rope_scaling && std::holds_alternative<LongRopeScaling>(*config.rope_scaling))
    std::get<LongRopeScaling>(*config.rope_scaling).original_max_position_embeddings = 32;  // one rope for all passes
  Model model = random_model(config);
  const at::Tensor ids = some_tokens({2, 14}, 9);
  const at::Tensor full = run_logits(model, {ids, {}, {}, {}});
  KvCache cache(config.num_hidden_layers, 14);
  for (const auto& [begin, size] : std::vector<std::pair<int, int>>{{0, 6}, {6, 1}, {7, 5}, {12, 1}, {13, 1}}) {
    const at::Tensor logits = run_logits(model, {ids.narrow(1, begin, size).contiguous(), {}, {}, {}}, &cache);
    EXPECT_LT(deviation(logits, full.narrow(1, begin, size)), 1e-11) << begin;
  }
}

/// With a cache, past the window and past the old context of "longrope", against a pass over all tokens for each.
TEST_P(Family, GeneratesWhatFullPassesSay) {
  Model model = random_model(golden_config(GetParam()), at::kFloat);
  Generator generator(model);
  std::vector<std::int32_t> ids{3, 14, 15, 9, 2};
  const auto made = generator.generate({ids}, {.max_new_tokens = 12, .stop_ids = {}}).front();
  ASSERT_EQ(made.size(), 12u);
  for (const std::int32_t id : made) {
    const at::Tensor logits = generator.logits(ids)[0][std::int64_t(ids.size()) - 1];
    EXPECT_EQ(id, logits.argmax().item<std::int64_t>()) << ids.size();
    ids.push_back(id);
  }
}

TEST_P(Family, AdaptsEveryProjection) {
  Model model = make_model(golden_config(GetParam()));
  LoraOptions options;
  options.target_modules = {"all-linear"};
  const LoraOptions resolved = add_lora(model, options);
  EXPECT_GT(resolved.target_modules.size(), 2u);
  EXPECT_EQ(resolved.fan_in_fan_out, model.config.model_type == "gpt2");
  std::size_t matrices = 0;
  for (const Parameter& parameter : model.units[1]->parameters())
    for (const TensorSpec& part : parameter.parts) matrices += part.shape.size() == 2 && !parameter.trainable;
  EXPECT_EQ(model.units[1]->adapters().size(), matrices);
  options.target_modules = {"no_proj"};
  Model other = make_model(golden_config(GetParam()));
  EXPECT_THROW(add_lora(other, options), InputError);
}

INSTANTIATE_TEST_SUITE_P(Families, Family, ::testing::ValuesIn(golden_families()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Families, HaveAGoldenModelEach) {
  std::set<std::string> types;
  for (const std::string& name : golden_families()) types.insert(golden_json(name)["model_type"]);
  for (const auto* family : model_families()) EXPECT_EQ(types.count(family->model_type), 1u) << family->model_type;
}

/// A family with layer norms names the epsilon otherwise; a stray rms_norm_eps is not its field.
TEST(Families, ReadTheEpsilonByItsOwnNameAlone) {
  const nlohmann::json file{{"vocab_size", 72},       {"hidden_size", 16},        {"intermediate_size", 24},
                            {"num_hidden_layers", 1}, {"num_attention_heads", 2}, {"num_key_value_heads", 2},
                            {"norm_epsilon", 1e-3},   {"rms_norm_eps", 0.5}};
  ConfigFields fields(file, "x");
  ModelConfig config;
  read_decoder(fields, config, {}, "norm_epsilon");
  EXPECT_EQ(config.rms_norm_eps, 1e-3);
}

TEST(Families, RefuseWhatContradictsItself) {
  EXPECT_THAT(refusal("mistral-window", "sliding_window", 0), HasSubstr("sliding_window"));
  EXPECT_THAT(refusal("mistral-window", "layer_types", {"full_attention", "full_attention"}), HasSubstr("layer_types"));
  EXPECT_THAT(refusal("qwen2-yarn", "layer_types", {"full_attention"}), HasSubstr("layer_types"));
  EXPECT_THAT(refusal("qwen2-yarn", "use_sliding_window", false), HasSubstr("no sliding_window"));
  EXPECT_THAT(refusal("gemma3", "rope_parameters", {{"rope_type", "default"}}), HasSubstr("full_attention"));
  EXPECT_THAT(refusal("gemma3", "use_bidirectional_attention", true), HasSubstr("use_bidirectional_attention"));
  EXPECT_THAT(refusal("gemma3", "model_type", "gemma3"), HasSubstr("gemma3_text"));
  EXPECT_THAT(refusal("smollm3", "no_rope_layers", {1}), HasSubstr("no_rope_layers"));
  EXPECT_THAT(refusal("smollm3", "no_rope_layers", {true, true, false}), HasSubstr("list of 0 and 1"));
  EXPECT_THAT(refusal("granite", "residual_multiplier", 0), HasSubstr("residual_multiplier must be above 0"));
  EXPECT_THAT(refusal("gpt2", "add_cross_attention", true), HasSubstr("add_cross_attention"));
  EXPECT_THAT(refusal("gpt2", "n_layer", 1 << 30), HasSubstr("n_layer"));
  EXPECT_THAT(refusal("gpt2", "n_head", 16), HasSubstr("head_dim = 1 must be even, where heads are not rotated too"));
  EXPECT_THAT(refusal("gemma3", "hidden_activation", nullptr), HasSubstr("hidden_activation is null"));
  EXPECT_THAT(refusal("qwen3", "partial_rotary_factor", 0.5), HasSubstr("partial_rotary_factor"));
}

/// Rows of several lengths in one batch, the shorter ones filled up, as loaders make them.
TEST(LongRope, TurnsEachRowByItsOwnLength) {
  Model model = random_model(golden_config("phi3-longrope"));
  const at::Tensor ids = some_tokens({3, 14}, 9);
  Batch batch{ids, {}, at::zeros({3, 14}, at::kLong), {}};
  const std::int64_t lengths[] = {14, 8, 9};  // the old context is 8
  for (int row = 0; row < 3; ++row) batch.positions[row].narrow(0, 0, lengths[row]).copy_(at::arange(lengths[row]));
  const at::Tensor together = run_logits(model, batch);
  for (int row = 0; row < 3; ++row) {
    const at::Tensor alone = run_logits(model, {ids.narrow(0, row, 1).narrow(1, 0, lengths[row]), {}, {}, {}});
    EXPECT_LT(deviation(together.narrow(0, row, 1).narrow(1, 0, lengths[row]), alone), 1e-11) << row;
  }
}

/// Rows pass the old context at different steps, and one starts beyond it. A row that changes its rope is recomputed.
TEST(LongRope, ABatchGoesOnAsEachPromptAlone) {
  Model model = random_model(golden_config("phi3-longrope"), at::kFloat);
  const std::vector<Generator::Ids> prompts{
      {3, 14, 15, 9, 2}, {7}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {30, 31, 32, 33, 34, 35, 36, 37}};
  const GenerateOptions options{.max_new_tokens = 12, .stop_ids = {}};
  Generator together(model);
  const auto made = together.generate(prompts, options);
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    Generator::Ids ids = prompts[row];
    for (const std::int32_t id : made[row]) {
      const at::Tensor logits = together.logits(ids)[0][std::int64_t(ids.size()) - 1];
      EXPECT_EQ(id, logits.argmax().item<std::int64_t>()) << "row " << row << ", " << ids.size() << " tokens";
      ids.push_back(id);
    }
    EXPECT_EQ(Generator(model).generate({prompts[row]}, options).front(), made[row]) << row;
  }
}

TEST(Families, ReadAndWriteTheirDropout) {
  const auto read_back = [](const ModelConfig& config) {
    return parse_model_config(format_model_config(config, "float32"), "y").dropout;
  };
  nlohmann::json file = golden_json("gpt2");
  file["attn_pdrop"] = 0.25;
  for (const char* name : {"resid_pdrop", "embd_pdrop"}) file.erase(name);
  ModelConfig config = parse_model_config(file.dump(), "x");
  EXPECT_EQ(config.dropout, (DropoutShares{0.1, 0.25, 0.1})) << "an absent field has the default of transformers";
  EXPECT_EQ(read_back(config), config.dropout);
  config.run_dropout = DropoutShares{0, 0.5, 0};
  EXPECT_EQ(config.trained_dropout().attention, 0.5);
  EXPECT_EQ(read_back(config), config.dropout) << "that of a run is not the model's";
  EXPECT_FALSE(golden_config("gpt2").dropout.any());
  const std::tuple<const char*, const char*, DropoutShares> fields[] = {
      {"starcoder2", "embedding_dropout", {.embedding = 0.5}},
      {"starcoder2", "attention_dropout", {.attention = 0.5}},
      {"starcoder2", "residual_dropout", {.residual = 0.5}},
      {"phi3-longrope", "resid_pdrop", {.residual = 0.5}},
      {"phi3-longrope", "embd_pdrop", {}},  // transformers does not apply it
      {"phi3-longrope", "attention_dropout", {.attention = 0.5}},
      {"granite", "attention_dropout", {.attention = 0.5}},
      {"qwen3", "attention_dropout", {.attention = 0.5}}};
  for (const auto& [family, name, expected] : fields) {
    file = golden_json(family);
    file[name] = 0.5;
    config = parse_model_config(file.dump(), "x");
    EXPECT_EQ(config.dropout, expected) << family << " " << name;
    EXPECT_EQ(read_back(config), expected) << family << " " << name;
    EXPECT_EQ(nlohmann::json::parse(format_model_config(config, "float32")).at(name), 0.5) << family << " " << name;
  }
  EXPECT_THAT(refusal("gpt2", "attn_pdrop", 1.5), HasSubstr("attn_pdrop = 1.5 must be at least 0 and below 1"));
  EXPECT_THAT(refusal("gpt2", "resid_pdrop", 1.0), HasSubstr("resid_pdrop = 1"));
  EXPECT_THAT(refusal("qwen3", "attention_dropout", -0.1), HasSubstr("attention_dropout"));
}

TEST(Families, ReadGemmasOlderNames) {
  nlohmann::json file = golden_json("gemma3");
  for (const char* name : {"rope_parameters", "layer_types"}) file.erase(name);
  file["rope_theta"] = 5e5;
  file["rope_local_base_freq"] = 2e4;
  file["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  file["sliding_window_pattern"] = 2;
  const ModelConfig config = parse_model_config(file.dump(), "x");
  EXPECT_EQ(config.rope_theta, 5e5);
  EXPECT_EQ(config.local_rope_theta, 2e4);
  EXPECT_EQ(std::get<LinearScaling>(config.rope_scaling.value()).factor, 8.0);
  EXPECT_FALSE(config.local_rope_scaling);
  EXPECT_EQ(config.layer(0).window, 4);
  EXPECT_EQ(config.layer(1).window, 0);
  EXPECT_EQ(config.layer(1).rope, LayerAttention::Rope::global);
}

}  // namespace
}  // namespace zero::test
