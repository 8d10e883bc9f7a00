#include "models/formats/hf_directory.h"
#include "models/families/config_json.h"
#include "models/families/families.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/json_text.h"
#include "models/formats/hf_weights.h"
#include "models/model.h"
#include "models/weight_source.h"
#include "tests/unit/models/small_tokenizer.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace hf_directory_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string tiny = ZERO_TEST_DATA "/tiny/model";
const std::string sharded = ZERO_TEST_DATA "/tiny-tied-bf16-sharded/model";

at::Tensor whole(const HfDirectory& directory, const std::string& name) {
  at::Tensor out = at::empty(directory.find(name)->shape, at::kFloat);
  directory.read(name, 0, out.numel(), out);
  return out;
}

std::string refusal(const std::string& folder) {
  try {
    HfDirectory directory(folder);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

void copy_model(const std::string& from, const TemporaryFolder& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    fs::copy(entry.path(), fs::path(to.path()) / entry.path().filename());
    fs::permissions(fs::path(to.path()) / entry.path().filename(), fs::perms::owner_all);
  }
}

TEST(HfDirectory, ReadsRangesOfOneFileAndOfShards) {
  for (const auto& folder : {tiny, sharded}) {
    const HfDirectory directory(folder);
    for (const auto& name : directory.names()) {
      const at::Tensor all = whole(directory, name).view({-1});
      const at::Tensor part = at::empty({all.numel() / 3}, at::kFloat);
      directory.read(name, all.numel() / 2, part.numel(), part);
      EXPECT_TRUE(part.equal(all.narrow(0, all.numel() / 2, part.numel()))) << name;
    }
  }
}

TEST(HfDirectory, BothModelsHaveAllTheirTensors) {
  for (const auto& folder : {tiny, sharded}) {
    const auto directory = std::make_shared<HfDirectory>(folder);
    HfWeights weights(directory);
    const Model model = make_model(directory->config());
    EXPECT_NO_THROW(weights.check(tensors_of(model)));
    EXPECT_EQ(tensors_of(model).size(), directory->names().size());
  }
}

TEST(HfDirectory, ReadsBackAWrittenModel) {
  const HfDirectory source(tiny);
  std::vector<TensorSpec> specs = tensors_of(make_model(source.config()));
  for (const std::int64_t limit : {std::int64_t{5'000'000'000}, std::int64_t{200'000}, std::int64_t{1}}) {
    const TemporaryFolder folder;
    HfWriter writer(folder.path(), source.config(), specs,
                    {.max_shard_bytes = limit, .tokenizer = find_tokenizer("", "", ZERO_TEST_DATA "/tinyllama-chat")});
    for (const auto& spec : specs) writer.append(whole(source, spec.name));
    writer.finish();
    const HfDirectory copy(folder.path());
    EXPECT_EQ(copy.names(), source.names());
    for (const auto& name : copy.names()) EXPECT_TRUE(whole(copy, name).equal(whole(source, name))) << name;
    EXPECT_EQ(fs::exists(folder / "model.safetensors"), limit > 1'000'000);
    EXPECT_TRUE(fs::exists(folder / "tokenizer.model"));
    EXPECT_TRUE(fs::exists(folder / "tokenizer_config.json"));
    for (const auto& entry : fs::directory_iterator(folder.path()))
      EXPECT_THAT(entry.path().string(), ::testing::Not(HasSubstr(".tmp")));
  }
}

// Files of a base other than weights are copied; a named option overrides them.
TEST(HfDirectory, TokenizerTemplateAndWayOfDrawingGoAlong) {
  const HfDirectory source(tiny);
  const std::vector<TensorSpec> specs = tensors_of(make_model(source.config()));
  const TemporaryFolder base, folder;
  const std::map<std::string, std::string> files{
      {"generation_config.json", R"({"eos_token_id": [2, 17, 5], "temperature": 0.6, "do_sample": true})"},
      {"special_tokens_map.json", R"({"eos_token": "</s>"})"},
      {"chat_template.jinja", "{{ messages }}"},
      {"tokenizer.json", "{}"},
      {"tokenizer_config.json", R"({"chat_template": "x"})"}};
  for (const auto& [name, content] : files) std::ofstream(base / name) << content;
  std::ofstream(base / "pytorch_model.bin") << "not this";
  const auto write = [&](const std::string& base_folder) {
    HfWriter writer(folder.path(), source.config(), specs,
                    {.tokenizer = find_tokenizer("", "", base.path()), .base = base_folder});
    for (const auto& spec : specs) writer.append(whole(source, spec.name));
    writer.finish();
  };
  write(base.path());
  for (const auto& [name, content] : files) EXPECT_EQ(read_text_file(folder / name), content) << name;
  EXPECT_FALSE(fs::exists(folder / "pytorch_model.bin"));
  write(TemporaryFolder().path());  // without one it is made of the configuration
  EXPECT_THAT(read_text_file(folder / "generation_config.json"),
              ::testing::AllOf(HasSubstr("_from_model_config"), ::testing::Not(HasSubstr("17"))));
}

TEST(HfDirectory, KeepsOtherFieldsOfTheBasesConfiguration) {
  const HfDirectory source(tiny);
  const std::vector<TensorSpec> specs = tensors_of(make_model(source.config()));
  const TemporaryFolder base, folder;
  auto config = nlohmann::json::parse(read_text_file(tiny + "/config.json"));
  config.update({{"pad_token_id", 0},
                 {"use_cache", false},
                 {"pretraining_tp", 1},
                 {"transformers_version", "4.35.0"},
                 {"architectures", {"Other"}},
                 {"torch_dtype", "float16"},
                 {"dtype", "float16"},
                 {"auto_map", {{"AutoModel", "code.py"}}},
                 {"_name_or_path", "/home/a"},
                 {"rope_parameters", {{"rope_theta", 1.0}}},
                 {"x", {{"y", {1}}}}});
  write_text_file(base / "config.json", config.dump());
  HfWriter writer(folder.path(), source.config(), specs, {.type = at::kBFloat16, .base = base.path()});
  for (const auto& spec : specs) writer.append(whole(source, spec.name));
  writer.finish();
  const auto written = nlohmann::json::parse(read_text_file(folder / "config.json"));
  for (const char* kept : {"pad_token_id", "use_cache", "pretraining_tp", "transformers_version", "x"})
    EXPECT_EQ(written.value(kept, nlohmann::json()), config[kept]) << kept;
  for (const char* gone : {"dtype", "auto_map", "_name_or_path", "rope_parameters"})
    EXPECT_FALSE(written.contains(gone)) << gone;
  EXPECT_EQ(written["architectures"][0], "LlamaForCausalLM");
  EXPECT_EQ(written["torch_dtype"], "bfloat16");
  EXPECT_EQ(parse_model_config(written.dump(), "x").rope_theta, source.config().rope_theta);
}

// transformers' own of a family may lie beyond a small vocabulary: SmolLM3's is 128004.
TEST(HfDirectory, AModelWithoutABaseNamesNoPadding) {
  const HfDirectory source(tiny);
  const std::vector<TensorSpec> specs = tensors_of(make_model(source.config()));
  const TemporaryFolder folder;
  HfWriter writer(folder.path(), source.config(), specs, {});
  for (const auto& spec : specs) writer.append(whole(source, spec.name));
  writer.finish();
  const auto written = nlohmann::json::parse(read_text_file(folder / "config.json"));
  ASSERT_TRUE(written.contains("pad_token_id"));
  EXPECT_TRUE(written["pad_token_id"].is_null());
}

// The end of an answer ends texts of the model, wherever a reader looks.
TEST(HfDirectory, TheEndOfAnAnswerIsAnEndToken) {
  const HfDirectory source(tiny);
  const std::vector<TensorSpec> specs = tensors_of(make_model(source.config()));
  const TemporaryFolder base, folder;
  write_text_file(base / "tokenizer.model", test::small_tokenizer_model());
  write_text_file(base / "tokenizer_config.json",
                  R"({"added_tokens_decoder": {"301": {"content": "<|im_end|>", "special": true}}})");
  TokenizerSource tokenizer = find_tokenizer("", "", base.path());
  tokenizer.chat_template = "chatml";
  HfWriter writer(folder.path(), source.config(), specs, {.tokenizer = tokenizer});
  for (const auto& spec : specs) writer.append(whole(source, spec.name));
  writer.finish();
  EXPECT_EQ(HfDirectory(folder.path()).config().eos_token_ids, (std::vector<std::int64_t>{2, 301}));
  EXPECT_THAT(read_text_file(folder / "generation_config.json"), HasSubstr("301"));
}

TEST(HfDirectory, AnEarlierModelDoesNotShowThrough) {
  const HfDirectory source(tiny);
  const std::vector<TensorSpec> specs = tensors_of(make_model(source.config()));
  const TemporaryFolder folder;
  for (const std::int64_t limit : {std::int64_t{5'000'000'000}, std::int64_t{300'000}, std::int64_t{5'000'000'000}}) {
    HfWriter writer(folder.path(), source.config(), specs, {.type = at::kBFloat16, .max_shard_bytes = limit});
    for (const auto& spec : specs) writer.append(at::full(spec.shape, static_cast<double>(limit % 97)));
    writer.finish();
    EXPECT_EQ(whole(HfDirectory(folder.path()), "model.norm.weight")[0].item<float>(), static_cast<float>(limit % 97));
  }
  EXPECT_FALSE(fs::exists(folder / "model.safetensors.index.json"));
}

TEST(HfDirectory, APartialModelIsNeverFinished) {
  const HfDirectory source(tiny);
  const TemporaryFolder folder;
  HfWriter writer(folder.path(), source.config(), tensors_of(make_model(source.config())));
  writer.append(at::zeros({100}));
  EXPECT_THROW(writer.finish(), InternalError);
  EXPECT_FALSE(fs::exists(folder / "config.json"));
}

TEST(HfDirectory, ShardNamesStayInTheFolder) {
  const std::string rest = R"(", "model.norm.weight": "model-00003-of-00003.safetensors"}})";
  for (const std::string name : {"../secret.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".", "", "a\\\\b",
                                 "x\\u0000y", "absent.safetensors"}) {
    const TemporaryFolder folder;
    copy_model(sharded, folder);
    write_text_file(folder / "model.safetensors.index.json",
                    R"({"weight_map": {"model.embed_tokens.weight": ")" + name + rest);
    EXPECT_THAT(refusal(folder.path()), HasSubstr("shard name")) << name;
  }
}

TEST(HfDirectory, TheCacheOfTheHubIsRead) {
  const TemporaryFolder hub;
  fs::create_directories(hub / "models--x/blobs");
  fs::create_directories(hub / "models--x/snapshots/abc");
  for (const auto& entry : fs::directory_iterator(sharded)) {
    const std::string name = entry.path().filename();
    fs::copy(entry.path(), hub / ("models--x/blobs/" + name));
    fs::create_symlink("../../blobs/" + name, hub / ("models--x/snapshots/abc/" + name));
  }
  EXPECT_EQ(refusal(hub / "models--x/snapshots/abc"), "accepted");
}

TEST(HfDirectory, ShardsMayBeLinksToAnotherPlace) {
  const TemporaryFolder folder;
  for (const auto& entry : fs::directory_iterator(sharded))
    fs::create_symlink(fs::canonical(entry.path()), folder / entry.path().filename().string());
  EXPECT_EQ(refusal(folder.path()), "accepted");
  fs::remove(folder / "model-00002-of-00003.safetensors");
  fs::create_symlink("nowhere", folder / "model-00002-of-00003.safetensors");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("is missing in the folder"));
}

TEST(HfDirectory, BrokenDirectoriesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal(folder / "absent"), HasSubstr("no such model directory"));
  EXPECT_THAT(refusal(folder.path()), HasSubstr("config.json"));
  copy_model(sharded, folder);
  write_text_file(folder / "model.safetensors.index.json",
                  R"({"weight_map": {"nothing": "model-00001-of-00003.safetensors"}})");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("but is not"));
  write_text_file(folder / "model.safetensors.index.json", R"({"weight_map": {"nothing": 5}})");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("must be a string"));
  write_text_file(folder / "model.safetensors.index.json", R"([])");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("weight_map"));
  fs::remove(folder / "model.safetensors.index.json");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("holds neither"));
}

std::string check_refusal(const std::string& folder, const std::vector<TensorSpec>& specs) {
  HfWeights weights(std::make_shared<HfDirectory>(folder));
  try {
    weights.check(specs);
    weights.check_values();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HfWeights, MissingAndMisshapenTensorsAreNamed) {
  EXPECT_THAT(check_refusal(tiny, {{"model.extra.weight", {3, 4}}}),
              ::testing::AllOf(HasSubstr("model.extra.weight"), HasSubstr("[3, 4]"), HasSubstr("missing")));
  EXPECT_THAT(check_refusal(tiny, {{"model.norm.weight", {65}}}),
              ::testing::AllOf(HasSubstr("[64]"), HasSubstr("[65]")));
  EXPECT_THAT(check_refusal(tiny, {{"model.norm.weight", {64, 1}}}), HasSubstr("[64, 1]"));
  EXPECT_THAT(check_refusal(sharded, {{"lm_head.weight", {515, 48}}}), HasSubstr("tie_word_embeddings"));
}

/// A tied model that is stored with an embedding, with a head as well, or by the head's name alone.
TEST(HfWeights, TiedModelsAreReadWithOrWithoutAStoredHead) {
  const HfDirectory source(sharded);
  const at::Tensor embedding = whole(source, "model.embed_tokens.weight");
  for (const bool with_head : {true, false})
    for (const bool with_embedding : {true, false}) {
      if (!with_head && !with_embedding) continue;
      const TemporaryFolder folder;
      fs::copy(sharded + "/config.json", folder / "config.json");
      std::vector<SafetensorsSpec> specs;
      for (const auto& name : source.names())
        if (with_embedding || name != "model.embed_tokens.weight")
          specs.push_back({name, at::kFloat, source.find(name)->shape});
      if (with_head) specs.push_back({"lm_head.weight", at::kFloat, embedding.sizes().vec()});
      SafetensorsWriter writer(folder / "model.safetensors", specs);
      for (const auto& spec : specs)
        writer.append(spec.name == "lm_head.weight" ? embedding : whole(source, spec.name));
      writer.finish();
      const auto directory = std::make_shared<HfDirectory>(folder.path());
      Model model = make_model(directory->config());
      hold_parameters(model, at::kFloat);
      HfWeights weights(directory);
      load_parameters(model, weights);
      EXPECT_TRUE(model.units.front()->parameters().front().tensor.equal(embedding));
    }
}

/// Transformers does not tie such a head, although config.json says that it is tied.
TEST(HfWeights, AHeadThatDiffersFromATiedEmbeddingIsRefused) {
  const HfDirectory source(sharded);
  const at::Tensor embedding = whole(source, "model.embed_tokens.weight");
  const TemporaryFolder folder;
  fs::copy(sharded + "/config.json", folder / "config.json");
  std::vector<SafetensorsSpec> specs;
  for (const auto& name : source.names()) specs.push_back({name, at::kFloat, source.find(name)->shape});
  specs.push_back({"lm_head.weight", at::kFloat, embedding.sizes().vec()});
  at::Tensor head = embedding.clone();
  head[-1][-1] += 1e-3;
  SafetensorsWriter writer(folder / "model.safetensors", specs);
  for (const auto& spec : specs) writer.append(spec.name == "lm_head.weight" ? head : whole(source, spec.name));
  writer.finish();
  EXPECT_THAT(
      check_refusal(folder.path(), tensors_of(make_model(source.config()))),
      ::testing::AllOf(HasSubstr(folder.path()), HasSubstr("lm_head.weight differs from model.embed_tokens.weight"),
                       HasSubstr("tie_word_embeddings")));
}

}  // namespace hf_directory_test
}  // namespace zero
