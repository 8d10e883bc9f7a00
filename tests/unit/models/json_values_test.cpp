// Files with valid JSON and values of any type in any place are read, or refused with the file's name. No exception of
// the JSON library escapes.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/json_text.h"
#include "models/formats/generation_config.h"
#include "models/formats/gguf/tokenizer/tokenizer_keys.h"
#include "models/formats/hf_directory.h"
#include "models/formats/tokenizer_files.h"
#include "models/lora/peft_directory.h"
#include "models/text/chat_template.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/tokenizer.h"
#include "tests/unit/models/small_tokenizer.h"
#include "tests/unit/temporary_folder.h"

namespace zero::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::vector<json> values = {nullptr,
                                  true,
                                  -1,
                                  3,
                                  1.5,
                                  1e300,
                                  std::uint64_t(-1),
                                  "",
                                  "x",
                                  json::array(),
                                  json::array({"x"}),
                                  json::array({1}),
                                  json::array({nullptr}),
                                  json::object(),
                                  {{"a", 1}},
                                  {{"content", 3}},
                                  {{"content", "x"}}};

void collect(const json& document, const json::json_pointer& place, std::vector<json::json_pointer>& places) {
  places.push_back(place);
  if (document.is_object())
    for (const auto& [key, value] : document.items()) collect(value, place / key, places);
  if (document.is_array())
    for (std::size_t i = 0; i < document.size(); ++i) collect(document[i], place / i, places);
}

/// Without a sync, which thousands of files would wait for.
void write_quickly(const std::string& path, const json& document) { std::ofstream(path) << document.dump(); }

/// Writes the document with each value in each place, and reads.
template <class Read>
int try_all(const std::string& path, const json& document, const Read& read) {
  write_quickly(path, document);
  EXPECT_NO_THROW(read());
  std::vector<json::json_pointer> places;
  collect(document, json::json_pointer(), places);
  int refused = 0;
  for (const auto& place : places)
    for (const json& value : values) {
      json changed = document;
      changed[place] = value;
      write_quickly(path, changed);
      try {
        read();
      } catch (const InputError& error) {
        ++refused;
        EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr(fs::path(path).parent_path().string()),
                                                   ::testing::Not(::testing::HasSubstr("json.exception"))))
            << place.to_string() << " = " << value;
      } catch (const std::exception& error) {
        ADD_FAILURE() << path << ": " << place.to_string() << " = " << value << ": " << error.what();
      }
    }
  write_quickly(path, document);
  return refused;
}

TEST(JsonValues, InAModelDirectory) {
  const TemporaryFolder folder;
  for (const auto& entry : fs::directory_iterator(ZERO_TEST_DATA "/tiny-tied-bf16-sharded/model"))
    fs::copy(entry.path(), fs::path(folder.path()) / entry.path().filename());
  for (const auto& entry : fs::directory_iterator(folder.path())) fs::permissions(entry.path(), fs::perms::owner_all);
  const auto open = [&] { HfDirectory{folder.path()}; };
  json config = json::parse(read_text_file(folder / "config.json"));
  for (const char* rope : {"rope_scaling", "rope_parameters"}) {
    json one = config;
    one.erase("rope_scaling");
    one.erase("rope_parameters");
    one["rope_theta"] = 1e5;
    one[rope] = {{"rope_type", "llama3"},
                 {"type", "llama3"},
                 {"rope_theta", 1e5},
                 {"factor", 8.0},
                 {"low_freq_factor", 1.0},
                 {"high_freq_factor", 4.0},
                 {"original_max_position_embeddings", 64}};
    one["eos_token_id"] = {2, 3};
    EXPECT_GT(try_all(folder / "config.json", one, open), 100);
  }
  EXPECT_GT(try_all(folder / "model.safetensors.index.json",
                    json::parse(read_text_file(folder / "model.safetensors.index.json")), open),
            100);
}

TEST(JsonValues, InGenerationConfig) {
  const TemporaryFolder folder;
  const ModelConfig config = preset_config("llama-tiny");
  const auto use = [&] {
    write_generation_config(folder.path(), config, folder.path(), stop_ids_of(config, folder.path(), {}));
  };
  EXPECT_GT(try_all(folder / "generation_config.json", {{"eos_token_id", {2, 17}}, {"temperature", 0.6}}, use), 10);
}

TEST(JsonValues, InTokenizerFiles) {
  const TemporaryFolder folder, out;
  write_text_file(folder / "tokenizer.model", small_tokenizer_model());
  const TokenizerSource source = find_tokenizer("", "", folder.path());
  ModelConfig model = preset_config("llama-tiny");
  const auto use = [&] {
    const Tokenizer tokenizer = Tokenizer::load(source.tokenizer);
    ChatTokenizer(tokenizer, source.settings).encode("<s> the word<|im_end|>");
    stop_ids_of(model, "", source);
    encoding_rules_of(source);
    tokenizer_config_of(source);
    GgufMetadata metadata;
    GgufTokenizerKeys(source, model).add_to(metadata);
  };
  const json token{{"content", "<|im_end|>"}, {"lstrip", false},      {"normalized", false},
                   {"rstrip", false},         {"single_word", false}, {"special", true}};
  const json settings{
      {"added_tokens_decoder", {{"301", token}}},
      {"bos_token", {{"content", "<s>"}}},
      {"eos_token", "</s>"},
      {"pad_token", nullptr},
      {"legacy", false},
      {"add_prefix_space", true},
      {"add_bos_token", true},
      {"additional_special_tokens", {"<|im_end|>"}},
      {"tokenizer_class", "LlamaTokenizer"},
      {"chat_template",
       json::array({{{"name", "default"}, {"template", ChatTemplate::named("chatml", "", "</s>").jinja()}}})}};
  EXPECT_GT(try_all(folder / "tokenizer_config.json", settings, use), 10);
  fs::remove(folder / "tokenizer_config.json");
  EXPECT_GT(try_all(folder / "added_tokens.json", {{"<|im_end|>", 301}, {"word", 302}}, use), 10);
  const auto write = [&] { write_tokenizer_files(out.path(), source); };
  try_all(folder / "special_tokens_map.json",
          {{"bos_token", {{"content", "<s>"}}}, {"additional_special_tokens", {"<|im_end|>"}}}, write);
  EXPECT_GT(try_all(folder / "tokenizer.json",
                    {{"model", {{"merges", json::array({"t h", json::array({"th", "e"})})}}}}, use),
            10);
}

TEST(JsonValues, InAnAdapter) {
  const TemporaryFolder folder;
  fs::copy(ZERO_TEST_DATA "/tiny-lora/adapter/adapter_model.safetensors", folder / "adapter_model.safetensors");
  const json config = json::parse(read_text_file(ZERO_TEST_DATA "/tiny-lora/adapter/adapter_config.json"));
  EXPECT_GT(try_all(folder / "adapter_config.json", config, [&] { PeftDirectory{folder.path()}; }), 100);
}

}  // namespace
}  // namespace zero::test
