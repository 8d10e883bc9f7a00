// Adapters with a file and an adapter_config.json that disagree, and with whole tensors in addition to the pairs.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>

#include "base/error.h"
#include "models/formats/safetensors_writer.h"
#include "models/initial_weights.h"
#include "models/lora/adapted_weights.h"
#include "models/lora/adapter_writer.h"
#include "models/lora/gguf_adapter.h"
#include "tests/unit/message_of.h"
#include "tests/unit/models/small_model.h"
#include "tests/unit/temporary_folder.h"

namespace zero::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string prefix = peft_prefix;
const std::string layer = prefix + "model.layers.1.";

ModelConfig tied_config() {
  ModelConfig config = small_config();
  config.tie_word_embeddings = true;
  return config;
}

/// An adapter's folder over a small model. At first it is whole: pairs of all q and v, and what the options save.
class StoredAdapter {
 public:
  explicit StoredAdapter(
      const std::function<void(LoraOptions&)>& change = [](LoraOptions&) {}, const ModelConfig& config = small_config())
      : config_(config) {
    options.r = 3;
    options.alpha = 7;
    options.target_modules = {"q_proj", "v_proj"};
    change(options);
    Model adapted = make_model(config);
    LoraOptions known = options;
    std::erase(known.modules_to_save, "mlp");
    add_lora(adapted, known);
    for (const auto& unit : adapted.units)
      for (const Parameter& parameter : unit->parameters())
        for (const TensorSpec& part : parameter.parts)
          if (parameter.trainable) add(part.name, part.shape);
  }

  /// A random tensor; PEFT's prefix may be left out.
  void add(const std::string& name, at::IntArrayRef shape, at::ScalarType type = at::kFloat) {
    const std::string stored = name.starts_with(prefix) ? name : prefix + name;
    tensors[stored] = (0.3 * random(shape, 100 + tensors.size())).to(type);
  }

  std::shared_ptr<const AdapterContents> open() {
    std::vector<SafetensorsSpec> specs;
    for (const auto& [name, value] : tensors) specs.push_back({name, value.scalar_type(), value.sizes().vec()});
    SafetensorsWriter writer(folder_ / "adapter_model.safetensors", specs);
    for (const auto& [name, value] : tensors) writer.append(value);
    writer.finish();
    write_adapter_config(folder_.path(), options, "somewhere");
    return open_adapter(folder_.path(), model());
  }
  std::string refusal() {
    return message_of<InputError>([&] { open()->check_values(); });
  }

  Model model() const { return make_model(config_); }
  std::shared_ptr<WeightSource> base() const { return std::make_shared<RandomWeights>(model(), 3); }
  at::Tensor merged(const std::string& name) {
    MergedWeights weights(base(), open());
    return read(weights, name);
  }
  at::Tensor read(WeightSource& weights, const std::string& name) const {
    for (const TensorSpec& spec : tensors_of(model()))
      if (spec.name == name) {
        const at::Tensor value = at::empty({spec.numel()}, at::kFloat);
        weights.read(spec, 0, spec.numel(), value);
        return value.view(spec.shape);
      }
    throw std::runtime_error("no tensor " + name);
  }

  LoraOptions options;
  std::map<std::string, at::Tensor> tensors;  // of the file

 private:
  ModelConfig config_;
  TemporaryFolder folder_;
};

TEST(AdapterContents, EachPromisedTensorMustBeThere) {
  const std::function<void(LoraOptions&)> kinds[] = {[](LoraOptions&) {},
                                                     [](LoraOptions& options) { options.use_dora = true; },
                                                     [](LoraOptions& options) {
                                                       options.modules_to_save = {"lm_head", "norm"};
                                                     }};
  for (const auto& kind : kinds) {
    StoredAdapter whole(kind);
    EXPECT_TRUE(whole.open()->beside().empty());
    for (const auto& [name, value] : std::map(whole.tensors)) {
      whole.tensors.erase(name);
      EXPECT_THAT(whole.refusal(),
                  AllOf(HasSubstr("tensor \"" + name + "\" is missing"), HasSubstr("adapter_config.json")));
      whole.tensors[name] = value;
    }
  }
  // Promises that no tensor of the model could keep.
  StoredAdapter saving;
  saving.options.modules_to_save = {"norm", "score"};
  EXPECT_THAT(saving.refusal(), HasSubstr("\"modules_to_save\" of adapter_config.json names \"score\", the end of no"));
  for (const auto& [target, module] : {std::pair("embed_tokens", "model.embed_tokens"), {"norm", "model.norm"}}) {
    StoredAdapter targeting;
    targeting.options.target_modules.emplace_back(target);
    EXPECT_THAT(targeting.refusal(),
                HasSubstr(std::string("\"target_modules\" of adapter_config.json names ") + module + ": only"));
  }
  StoredAdapter tied([](LoraOptions&) {}, tied_config());
  tied.options.target_modules.emplace_back("lm_head");
  EXPECT_THAT(tied.refusal(), HasSubstr("names lm_head, which the model has as one with its embedding"));
}

/// PEFT adapts nothing in a module that is saved whole.
TEST(AdapterContents, AnEmbeddingThatIsSavedWholeMayBeATargetToo) {
  StoredAdapter adapter([](LoraOptions& options) { options.modules_to_save = {"embed_tokens"}; });
  adapter.options.target_modules.emplace_back("embed_tokens");
  EXPECT_TRUE(adapter.open()->beside().empty());
}

TEST(AdapterContents, AWholeKindThatIsMissingIsCounted) {
  StoredAdapter adapter;
  std::erase_if(adapter.tensors, [](const auto& tensor) { return tensor.first.find("v_proj") != std::string::npos; });
  EXPECT_THAT(adapter.refusal(),
              AllOf(HasSubstr("v_proj.lora_A.weight\" and 3 more are missing"), HasSubstr("target_modules")));
  adapter.tensors.clear();
  EXPECT_THAT(adapter.refusal(), AllOf(HasSubstr("and 7 more are missing"), HasSubstr("the file holds no tensor")));
  adapter.add("default.q_proj.lora_A.weight", {3, 32});
  EXPECT_THAT(adapter.refusal(), HasSubstr("the file holds \"base_model.model.default.q_proj.lora_A.weight\""));
}

TEST(AdapterContents, TensorsThatNothingPromisesAreRefused) {
  const auto with = [](const std::string& name, at::IntArrayRef shape) {
    StoredAdapter adapter;
    adapter.add(name, shape);
    return adapter.refusal();
  };
  const std::string attention = "model.layers.0.self_attn.";
  EXPECT_THAT(with(attention + "k_proj.lora_A.weight", {3, 32}),
              AllOf(HasSubstr("k_proj.lora_A"), HasSubstr("\"target_modules\"")));
  EXPECT_THAT(with("lm_head.lora_B.weight", {61, 3}), HasSubstr("\"target_modules\""));
  EXPECT_THAT(with(attention + "q_proj.lora_magnitude_vector", {64}), HasSubstr("\"use_dora\""));
  EXPECT_THAT(with(attention + "q_proj.lora_B.bias", {64}), HasSubstr("\"lora_bias\""));
  EXPECT_THAT(with(attention + "q_proj.weight", {64, 32}), HasSubstr("MODULE.base_layer.weight"));
  EXPECT_THAT(with("model.embed_tokens.lora_embedding_A", {3, 61}), HasSubstr("merge_and_unload"));
  for (const char* other : {"model.layers.2.self_attn.q_proj.lora_A.weight", "lm_head.modules_to_save.default.weight",
                            "model.layers.0.self_attn.k_proj.base_layer.weight"})
    EXPECT_THAT(with(other, {3}), HasSubstr(std::string("no place for tensor \"base_model.model.") + other)) << other;
}

TEST(AdapterContents, ShapesAndTypesAreThoseOfTheModel) {
  StoredAdapter adapter;
  adapter.add(layer + "self_attn.v_proj.lora_A.weight", {4, 32});
  EXPECT_THAT(adapter.refusal(),
              AllOf(HasSubstr("[4, 32]"), HasSubstr("[3, 32]"), HasSubstr("belongs to another base")));
  adapter.add(layer + "self_attn.v_proj.lora_A.weight", {3, 32}, at::kInt);
  EXPECT_THAT(adapter.refusal(), HasSubstr("is I32"));
  StoredAdapter resized;
  resized.add("model.embed_tokens.weight", {64, 32});
  EXPECT_THAT(resized.refusal(), HasSubstr("[61, 32]"));
}

/// Tensors that PEFT writes with save_embedding_layers, and tensors added by hand.
TEST(AdapterContents, WholeTensorsReplaceTheBases) {
  StoredAdapter adapter;
  const std::pair<const char*, std::vector<std::int64_t>> whole[] = {{"model.embed_tokens.weight", {61, 32}},
                                                                     {"lm_head.weight", {61, 32}},
                                                                     {"model.norm.weight", {32}},
                                                                     {"model.layers.0.input_layernorm.weight", {32}},
                                                                     {"model.layers.0.mlp.up_proj.weight", {48, 32}}};
  for (const auto& [name, shape] : whole) adapter.add(name, shape, at::kBFloat16);
  adapter.add("model.layers.1.self_attn.q_proj.base_layer.weight", {64, 32});
  EXPECT_EQ(adapter.open()->beside().size(), 6U);
  Model adapted = adapter.model();
  add_lora(adapted, adapter.options);
  AdaptedWeights beside(adapter.base(), adapter.open());
  beside.check(tensors_of(adapted));
  for (const auto& [name, shape] : whole) {
    const at::Tensor expected = adapter.tensors.at(prefix + name).to(at::kFloat);
    EXPECT_TRUE(adapter.merged(name).equal(expected)) << name;
    EXPECT_TRUE(adapter.read(beside, name).equal(expected)) << name;
  }
  const std::string q = layer + "self_attn.q_proj.";
  const at::Tensor product = at::mm(adapter.tensors.at(q + "lora_B.weight"), adapter.tensors.at(q + "lora_A.weight"));
  EXPECT_LT(deviation(adapter.merged("model.layers.1.self_attn.q_proj.weight"),
                      adapter.tensors.at(q + "base_layer.weight") + product * (7.0 / 3)),
            1e-6);
}

TEST(AdapterContents, WholeTensorsAreWrittenAgain) {
  StoredAdapter adapter;
  adapter.add("model.embed_tokens.weight", {61, 32}, at::kBFloat16);
  adapter.add("lm_head.weight", {61, 32});
  const auto start = adapter.open();
  Model adapted = adapter.model();
  const LoraOptions options = add_lora(adapted, start->options());
  std::vector<TensorSpec> trained;
  for (const TensorSpec& tensor : tensors_of(adapted))
    if (tensor.name.starts_with(prefix)) trained.push_back(tensor);
  const TemporaryFolder folder;
  AdapterWriter writer(folder.path(), trained, llama_family(), options, nullptr, start.get());
  for (const TensorSpec& tensor : trained) writer.append(tensor, at::ones(tensor.shape));
  writer.finish("somewhere", {});
  const auto written = open_adapter(folder.path(), adapter.model());
  EXPECT_EQ(written->beside().size(), 2U);
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"})
    EXPECT_TRUE(written->file().read(prefix + name).equal(adapter.tensors.at(prefix + name).to(at::kFloat))) << name;
}

TEST(AdapterContents, ATiedHeadStandsForItsEmbedding) {
  for (const auto& [with_embedding, with_head] : {std::pair{true, false}, {false, true}, {true, true}}) {
    StoredAdapter adapter([](LoraOptions&) {}, tied_config());
    const at::Tensor value = random({61, 32}, 9, at::kFloat);
    if (with_embedding) adapter.tensors[prefix + "model.embed_tokens.weight"] = value;
    if (with_head) adapter.tensors[prefix + "lm_head.weight"] = value.to(at::kDouble);
    adapter.open()->check_values();
    EXPECT_EQ(int(adapter.open()->beside().size()), with_embedding + with_head);
    EXPECT_TRUE(adapter.merged("model.embed_tokens.weight").equal(value));
    if (!with_embedding || !with_head) continue;
    adapter.tensors[prefix + "lm_head.weight"] = value + 1e-3;
    EXPECT_THAT(adapter.refusal(),
                AllOf(HasSubstr("lm_head.weight\" differs from \""), HasSubstr("tie_word_embeddings")));
  }
}

TEST(AdapterContents, ATiedHeadIsSavedWithItsEmbedding) {
  const auto saving = [](LoraOptions& options) { options.modules_to_save = {"embed_tokens"}; };
  StoredAdapter adapter(saving, tied_config());
  EXPECT_THAT(adapter.refusal(), HasSubstr("\"ensure_weight_tying\""));
  adapter.options.ensure_weight_tying = true;
  EXPECT_THAT(adapter.refusal(), AllOf(HasSubstr("lm_head.weight\" is missing"), HasSubstr("ensure_weight_tying")));
  adapter.tensors[prefix + "lm_head.weight"] = adapter.tensors.at(prefix + "model.embed_tokens.weight");
  adapter.open()->check_values();
  adapter.add("lm_head.weight", {61, 32});
  EXPECT_THAT(adapter.refusal(), HasSubstr("differs from"));
}

TEST(AdapterContents, AnUntiedHeadMayBeATarget) {
  StoredAdapter adapter;
  adapter.options.target_modules.emplace_back("lm_head");
  EXPECT_THAT(adapter.refusal(), HasSubstr("lm_head.lora_A.weight\" and 1 more are missing"));
  adapter.add("lm_head.lora_A.weight", {3, 32});
  adapter.add("lm_head.lora_B.weight", {61, 3});
  adapter.add("lm_head.base_layer.weight", {61, 32});
  const at::Tensor product = at::mm(adapter.tensors.at(prefix + "lm_head.lora_B.weight"),
                                    adapter.tensors.at(prefix + "lm_head.lora_A.weight"));
  EXPECT_LT(deviation(adapter.merged("lm_head.weight"),
                      adapter.tensors.at(prefix + "lm_head.base_layer.weight") + product * (7.0 / 3)),
            1e-6);
  StoredAdapter tied([](LoraOptions&) {}, tied_config());
  tied.options.target_modules.emplace_back("lm_head");
  tied.add("lm_head.lora_A.weight", {3, 32});
  EXPECT_THAT(tied.refusal(), HasSubstr("as one with its embedding"));
  tied.options.target_modules.pop_back();
  EXPECT_THAT(tied.refusal(), HasSubstr("no place for tensor"));
}

/// A module that is saved whole takes no adapters, nor do modules inside it.
TEST(AdapterContents, ModulesAroundOthersAreSavedWithAllOfThem) {
  StoredAdapter adapter([](LoraOptions& options) {
    options.target_modules = {"q_proj", "up_proj"};
    options.modules_to_save = {"mlp"};
  });
  EXPECT_THAT(adapter.refusal(),
              AllOf(HasSubstr("mlp.gate_proj.weight\" and 5 more are missing"), HasSubstr("modules_to_save")));
  for (const char* number : {"0", "1"}) {
    const std::string mlp = std::string("model.layers.") + number + ".mlp.";
    adapter.add(mlp + "gate_proj.weight", {48, 32});
    adapter.add(mlp + "up_proj.weight", {48, 32});
    adapter.add(mlp + "down_proj.weight", {32, 48});
  }
  EXPECT_THAT(adapter.refusal(), HasSubstr("up_proj.lora_A.weight"));
  std::erase_if(adapter.tensors,
                [](const auto& tensor) { return tensor.first.find("up_proj.lora") != std::string::npos; });
  EXPECT_TRUE(
      adapter.merged("model.layers.1.mlp.up_proj.weight").equal(adapter.tensors.at(layer + "mlp.up_proj.weight")));
  EXPECT_TRUE(adapter.open()->beside().empty());
}

TEST(AdapterContents, TargetsOfOtherFamiliesPromiseNothing) {
  StoredAdapter adapter;
  adapter.options.target_modules.emplace_back("c_attn");
  EXPECT_TRUE(adapter.open()->beside().empty());
  adapter.options.target_modules = {"c_attn"};
  EXPECT_THAT(adapter.refusal(), HasSubstr("names no projection of the model"));
}

TEST(AdapterContents, AnotherBaseIsRefused) {
  StoredAdapter adapter([](LoraOptions& options) { options.target_modules = {"q_proj", "down_proj"}; });
  adapter.open();
  ModelConfig shorter = small_config(), longer = small_config(), wider = small_config();
  shorter.num_hidden_layers = 1;
  longer.num_hidden_layers = 3;
  wider.intermediate_size = 64;
  for (const ModelConfig& config : {shorter, longer, wider})
    EXPECT_THAT(message_of<InputError>([&] { open_adapter(adapter.open()->folder(), make_model(config)); }),
                HasSubstr("belongs to another base"));
}

TEST(AdapterContents, AnAdapterAsGgufHoldsPairsAlone) {
  StoredAdapter dora([](LoraOptions&options) { options.use_dora = true; }),
      saving([](LoraOptions&options) { options.modules_to_save = {"lm_head"}; }), beside;
  beside.add("model.norm.weight", {32});
  const TemporaryFolder folder;
  const auto refusal = [&](StoredAdapter& adapter) {
    return message_of<InputError>(
        [&] { write_gguf_adapter(folder / "a.gguf", *adapter.open(), adapter.model(), "a"); });
  };
  EXPECT_THAT(refusal(dora), AllOf(HasSubstr("DoRA"), HasSubstr("--gguf F16")));
  EXPECT_THAT(refusal(saving), AllOf(HasSubstr("lm_head.weight"), HasSubstr("modules_to_save")));
  EXPECT_THAT(refusal(beside), AllOf(HasSubstr("model.norm.weight"), HasSubstr("--gguf F16")));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.gguf"));
}

}  // namespace
}  // namespace zero::test
