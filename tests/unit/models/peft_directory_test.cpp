// Adapters on disk: refusals, merging, and the start of a fresh one.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json_text.h"
#include "models/families/families.h"
#include "models/formats/safetensors_writer.h"
#include "models/initial_weights.h"
#include "models/lora/adapted_weights.h"
#include "tests/unit/models/small_model.h"
#include "tests/unit/temporary_folder.h"

namespace zero::test {
namespace peft_directory_test {

using ::testing::HasSubstr;

template <class Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

LoraOptions small_lora() {
  LoraOptions options;
  options.r = 3;
  options.alpha = 7;
  options.target_modules = {"q_proj", "v_proj", "down_proj"};
  return options;
}

/// The base of small_config() from a seed.
std::shared_ptr<WeightSource> base_weights() { return std::make_shared<RandomWeights>(make_model(small_config()), 3); }

Model adapted_model(const LoraOptions& options) {
  Model model = make_model(small_config());
  add_lora(model, options);
  return model;
}

/// A random adapter of the model that add_lora makes.
void write_adapter(const std::string& folder, const LoraOptions& options) {
  std::vector<SafetensorsSpec> specs;
  for (const TensorSpec& tensor : tensors_of(adapted_model(options)))
    if (tensor.name.starts_with(peft_prefix)) specs.push_back({tensor.name, at::kFloat, tensor.shape});
  SafetensorsWriter writer(folder + "/adapter_model.safetensors", specs);
  std::uint64_t seed = 50;
  for (const SafetensorsSpec& spec : specs) {
    const at::Tensor noise = 0.3 * random(spec.shape, seed++, at::kFloat);
    writer.append(spec.shape.size() == 1 ? 1 + noise : noise);
  }
  writer.finish();
  write_adapter_config(folder, options, "somewhere");
}

at::Tensor logits(Model& model, WeightSource& weights) {
  hold_parameters(model, at::kFloat);
  load_parameters(model, weights);
  const Batch batch{at::arange(20, at::kLong).view({2, 10}), {}, {}, {}};
  return run_logits(model, batch);
}

TEST(Adapters, MergedIntoTheBaseComputeTheSame) {
  for (const auto& [dora, rslora] : {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
    TemporaryFolder folder;
    LoraOptions options = small_lora();
    options.use_dora = dora;
    options.use_rslora = rslora;
    write_adapter(folder.path(), options);
    Model plain = make_model(small_config()), base = make_model(small_config());
    const auto adapter = open_adapter(folder.path(), plain);
    Model adapted = adapted_model(adapter->options());
    AdaptedWeights beside(base_weights(), adapter);
    MergedWeights merged(base_weights(), adapter);
    const at::Tensor expected = logits(adapted, beside);
    EXPECT_LT(deviation(logits(plain, merged), expected), 1e-5) << dora << rslora;
    EXPECT_GT(deviation(logits(base, *base_weights()), expected), 1e-2) << dora << rslora;
  }
}

TEST(Adapters, StartAsTheBase) {
  for (const bool dora : {false, true}) {
    LoraOptions options = small_lora();
    options.use_dora = dora;
    Model adapted = adapted_model(options), base = make_model(small_config());
    FreshAdapter fresh(base_weights(), std::make_shared<RandomWeights>(adapted, 3));
    EXPECT_LT(deviation(logits(adapted, fresh), logits(base, *base_weights())), 1e-6) << dora;
  }
}

TEST(Adapters, DrawKaimingOrGaussianAsPeft) {
  for (const LoraInit init : {LoraInit::kaiming, LoraInit::gaussian}) {
    LoraOptions options = small_lora();
    options.r = 16;
    options.init = init;
    Model model = adapted_model(options);
    RandomWeights drawn(model, 3);
    for (const auto& parameter : model.units[1]->parameters()) {
      const TensorSpec& spec = parameter.parts[0];
      if (!spec.name.ends_with("lora_A.weight")) continue;
      const at::Tensor a = at::empty({spec.numel()}, at::kFloat);
      drawn.read(spec, 0, spec.numel(), a);
      const double in = double(spec.shape[1]), bound = 1 / std::sqrt(in),
                   deviation = init == LoraInit::kaiming ? bound / std::sqrt(3.0) : 1.0 / 16;
      EXPECT_NEAR(a.std().item<double>() / deviation, 1, 0.15) << spec.name;
      EXPECT_LE(a.abs().max().item<double>(), init == LoraInit::kaiming ? bound : 1.0);
    }
  }
}

TEST(Adapters, PrintTrainableParametersAsPeft) {
  LoraOptions options;
  Model model = make_model(preset_config("tinyllama-1.1b"));
  add_lora(model, options);
  EXPECT_EQ(trainable_line(model), "trainable params: 1,126,400 || all params: 1,101,174,784 || trainable%: 0.1023");
}

TEST(Adapters, RefuseTargetsThatMatchNothing) {
  Model model = make_model(small_config());
  LoraOptions options;
  options.target_modules = {"q_proj", "query"};
  EXPECT_THAT(refusal([&] { add_lora(model, options); }),
              ::testing::AllOf(HasSubstr("\"query\""), HasSubstr("q_proj")));
  options = {};
  options.modules_to_save = {"score"};
  Model other = make_model(small_config());
  EXPECT_THAT(refusal([&] { add_lora(other, options); }), HasSubstr("\"score\""));
}

/// A name stands for all modules that end so, as in PEFT.
TEST(Adapters, TrainModulesByTheEndsOfTheirNames) {
  const auto trained = [](const std::vector<std::string>& saved, bool tied = false) {
    ModelConfig config = small_config();
    config.model_type = "qwen3";
    config.head_norm = HeadNorm::each_head;
    config.tie_word_embeddings = tied;
    Model model = make_model(config);
    LoraOptions options = small_lora();
    options.modules_to_save = saved;
    add_lora(model, options);
    std::set<std::string> names;
    for (const auto& unit : model.units)
      for (const Parameter& parameter : unit->parameters())
        if (parameter.trainable && !parameter.parts.front().name.starts_with(peft_prefix))
          names.insert(parameter.parts.front().name);
    return names;
  };
  EXPECT_EQ(trained({"norm"}).size(), 2 * 4 + 1u);
  EXPECT_THAT(trained({"model.norm"}), ::testing::ElementsAre("model.norm.weight"));
  EXPECT_THAT(trained({"layers.1.input_layernorm", "q_norm"}),
              ::testing::ElementsAre("model.layers.0.self_attn.q_norm.weight", "model.layers.1.input_layernorm.weight",
                                     "model.layers.1.self_attn.q_norm.weight"));
  EXPECT_THAT(trained({"embed_tokens", "lm_head"}),
              ::testing::ElementsAre("lm_head.weight", "model.embed_tokens.weight"));
  for (const char* none : {"q_proj", "mlp", "layers.0", "norm.weight"})
    EXPECT_THAT(refusal([&] { trained({none}); }), HasSubstr(std::string("\"") + none + "\" is the end of no module"));
  EXPECT_THAT(refusal([&] { trained({"lm_head"}, true); }), HasSubstr("the head is the embedding"));
}

/// PEFT trains embedding and head separately unless asked otherwise, although the model ties them.
TEST(Adapters, WithATiedEmbeddingAlsoListTheHead) {
  ModelConfig config = small_config();
  config.tie_word_embeddings = true;
  LoraOptions stored = small_lora();
  for (const char* name : {"embed_tokens", "lm_head", "model.embed_tokens"}) {
    stored.modules_to_save = {name, "model.norm"};
    stored.ensure_weight_tying = false;
    EXPECT_THAT(refusal([&] { stored_options(stored, config, "folder"); }),
                ::testing::AllOf(HasSubstr("folder/adapter_config.json"), HasSubstr("\"ensure_weight_tying\"")));
    EXPECT_EQ(stored_options(stored, small_config(), "folder").modules_to_save, stored.modules_to_save) << "not tied";
    stored.ensure_weight_tying = true;
    Model model = make_model(config);
    EXPECT_TRUE(add_lora(model, stored_options(stored, config, "folder")).ensure_weight_tying);
    EXPECT_TRUE(model.units.front()->parameters().front().trainable) << name;
  }
  stored.modules_to_save = {"norm"};
  Model model = make_model(config);
  EXPECT_FALSE(add_lora(model, stored_options(stored, config, "folder")).ensure_weight_tying);
}

TEST(Adapters, RefuseAPickle) {
  TemporaryFolder folder;
  write_adapter(folder.path(), small_lora());
  std::filesystem::rename(folder / "adapter_model.safetensors", folder / "adapter_model.bin");
  EXPECT_THAT(refusal([&] { PeftDirectory{folder.path()}; }), HasSubstr("safe_serialization=True"));
}

TEST(Adapters, RefuseKeysThatAreNotDone) {
  TemporaryFolder folder;
  write_adapter(folder.path(), small_lora());
  const std::string path = folder / "adapter_config.json";
  const auto good = nlohmann::json::parse(read_text_file(path, 1 << 20));
  const auto refused = [&](const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = good;
    config[key] = value;
    write_text_file(path, config.dump());
    return refusal([&] { PeftDirectory{folder.path()}; });
  };
  const std::pair<const char*, nlohmann::json> cases[] = {{"peft_type", "IA3"},
                                                          {"bias", "all"},
                                                          {"rank_pattern", {{"q_proj", 4}}},
                                                          {"layers_to_transform", {0}},
                                                          {"target_modules", ".*q_proj"},
                                                          {"target_modules", nlohmann::json::array()},
                                                          {"target_modules", 3},
                                                          {"r", 0},
                                                          {"r", "eight"},
                                                          {"lora_alpha", 1e308},
                                                          {"lora_dropout", 1.0},
                                                          {"lora_bias", true},
                                                          {"target_parameters", {"x"}},
                                                          {"exclude_modules", {"q_proj"}},
                                                          {"layer_replication", {{0, 1}}}};
  for (const auto& [key, value] : cases)
    EXPECT_THAT(refused(key, value), HasSubstr(std::string("\"") + key + "\"")) << value;
  for (const char* key :
       {"alpha_pattern", "layers_pattern", "trainable_token_indices", "use_qalora", "use_bdlora",
        "alora_invocation_tokens", "arrow_config", "velora_config", "monteclora_config", "kasa_config"})
    EXPECT_THAT(refused(key, true), HasSubstr(std::string("\"") + key + "\" = true is not supported"));
  // for a key that is unknown here, only "off" has a known meaning
  for (const nlohmann::json& on :
       {nlohmann::json(true), nlohmann::json(1), nlohmann::json("x"), nlohmann::json({{"a", 1}})})
    EXPECT_THAT(refused("use_tomorrow", on), HasSubstr("\"use_tomorrow\""));
  for (const nlohmann::json& off :
       {nlohmann::json(), nlohmann::json(false), nlohmann::json(""), nlohmann::json::array(), nlohmann::json::object()})
    EXPECT_EQ(refused("use_tomorrow", off), "nothing was refused") << off;
  write_text_file(path, "{\"r\": ");
  EXPECT_THAT(refusal([&] { PeftDirectory{folder.path()}; }), HasSubstr("adapter_config.json"));
  std::filesystem::remove(path);
  EXPECT_THAT(refusal([&] { PeftDirectory{folder.path()}; }), HasSubstr("holds no adapter_config.json"));
}

// PEFT changes the base's weights again when it loads these (peft 0.21, tried for each), so that W + scale B A is not
// its sum.
TEST(Adapters, RefuseStartsThatChangeTheBase) {
  TemporaryFolder folder;
  write_adapter(folder.path(), small_lora());
  const std::string path = folder / "adapter_config.json";
  auto config = nlohmann::json::parse(read_text_file(path));
  const auto refused = [&](const nlohmann::json& init) {
    config["init_lora_weights"] = init;
    write_text_file(path, config.dump());
    return refusal([&] { PeftDirectory{folder.path()}; });
  };
  for (const char* init : {"pissa", "pissa_niter_16", "olora", "OLoRA", "corda", "lora_ga"})
    EXPECT_THAT(refused(init), ::testing::AllOf(HasSubstr("\"init_lora_weights\""), HasSubstr(init),
                                                HasSubstr("path_initial_model_for_weight_conversion")))
        << init;
  EXPECT_THAT(refused("loftq"),
              ::testing::AllOf(HasSubstr("merge_and_unload"), ::testing::Not(HasSubstr("path_initial"))));
  EXPECT_THAT(refused("tomorrow"), HasSubstr("not known here"));
  EXPECT_THAT(refused(3), HasSubstr("\"init_lora_weights\""));
  for (const nlohmann::json& init :
       {nlohmann::json(true), nlohmann::json(false), nlohmann::json(), nlohmann::json("gaussian"),
        nlohmann::json("Gaussian"), nlohmann::json("eva"), nlohmann::json("orthogonal"), nlohmann::json("mica")})
    EXPECT_EQ(refused(init), "nothing was refused") << init;
}

// A file as peft 0.21 saves it, with every key that its LoraConfig has.
TEST(Adapters, ReadEveryKeyThatPeftWrites) {
  TemporaryFolder folder;
  write_adapter(folder.path(), small_lora());
  auto config = nlohmann::json::parse(read_text_file(folder / "adapter_config.json"));
  config.update(nlohmann::json::parse(
      R"({"alora_invocation_tokens": null, "alpha_pattern": {}, "arrow_config": null, "auto_mapping": null, "base_model_name_or_path": "base", "bias": "none",
      "corda_config": null, "ensure_weight_tying": false, "eva_config": {"rho": 2.0}, "exclude_modules": null, "fan_in_fan_out": false, "inference_mode": true, "init_lora_weights": true, "kasa_config": null,
      "layer_replication": null, "layers_pattern": null, "layers_to_transform": null, "loftq_config": {}, "lora_bias": false, "lora_ga_config": null, "megatron_config": null, "megatron_core": "megatron.core",
      "monteclora_config": null, "peft_version": "0.21.2", "qalora_group_size": 16, "rank_pattern": {}, "revision": null, "target_parameters": null, "task_type": "CAUSAL_LM",
      "trainable_token_indices": null, "use_bdlora": null, "use_qalora": false, "velora_config": null})"));
  write_text_file(folder / "adapter_config.json", config.dump());
  EXPECT_EQ(PeftDirectory(folder.path()).options().r, 3);
}

}  // namespace peft_directory_test
}  // namespace zero::test
