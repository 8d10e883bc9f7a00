// The files of a tokenizer that a model carries: the written folder must give the same ids and the same chats.
#include "models/formats/tokenizer_files.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/error.h"
#include "base/json_text.h"
#include "models/formats/generation_config.h"
#include "models/text/chat_template.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/tokenizer.h"
#include "tests/unit/models/small_tokenizer.h"
#include "tests/unit/temporary_folder.h"

namespace zero::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

const std::string chat_folder = ZERO_TEST_DATA "/tinyllama-chat";

const json chat_tokens = json::parse(
    R"({"301": {"content": "<|im_start|>", "lstrip": false, "normalized": false, "rstrip": false, "single_word": false, "special": true},
                                         "302": {"content": "<|im_end|>", "lstrip": false, "normalized": false, "rstrip": false, "single_word": false, "special": true}})");

/// A folder with the small tokenizer and the files given.
void fill(const TemporaryFolder& folder, const std::map<std::string, json>& files = {}) {
  write_text_file(folder / "tokenizer.model", small_tokenizer_model());
  for (const auto& [name, content] : files)
    write_text_file(folder / name, content.is_string() ? content.get<std::string>() : content.dump());
}

json read(const std::string& path) { return json::parse(read_text_file(path)); }

std::vector<std::int32_t> chat_ids(const TokenizerSource& source) {
  const Tokenizer tokenizer = Tokenizer::load(source.tokenizer);
  const ChatTemplate chat = ChatTemplate::load(source.settings, source.chat_template);
  return ChatTokenizer(tokenizer, source.settings)
      .encode(chat.render({{"user", "the user"}, {"assistant", "other  words"}, {"user", "the end"}}).text)
      .ids;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// transformers' class puts a space in front of texts unless its settings say otherwise, whatever the model says.
TEST(TokenizerFiles, AModelThatPutsNoSpaceInFrontSaysSoInItsSettings) {
  const std::string no_dummy_prefix{"\x1a\x02\x18\x00", 4};  // normalizer_spec { add_dummy_prefix: false }, merged
  for (const bool spaced : {true, false})
    for (const bool claims : {false, true}) {
      const TemporaryFolder from, to;
      fill(from);
      write_text_file(from / "tokenizer.model", small_tokenizer_model() + (spaced ? "" : no_dummy_prefix));
      if (claims) write_text_file(from / "tokenizer_config.json", R"({"add_prefix_space": true})");
      ASSERT_EQ(Tokenizer::load(from / "tokenizer.model").add_dummy_prefix(), spaced);
      write_tokenizer_files(to.path(), find_tokenizer(from / "tokenizer.model", "", ""));
      const json config = read(to / "tokenizer_config.json");
      EXPECT_EQ(config.value("add_prefix_space", json()), spaced ? (claims ? json(true) : json()) : json(false));
    }
}

TEST(TokenizerFiles, ATokenizerAloneIsWrittenWithWhatTransformersMustKnow) {
  const TemporaryFolder from, to;
  fill(from);
  write_tokenizer_files(to.path(), find_tokenizer(from / "tokenizer.model", "", ""));
  EXPECT_EQ(read_text_file(to / "tokenizer.model"), small_tokenizer_model());
  EXPECT_EQ(
      read(to / "tokenizer_config.json"),
      json::parse(
          R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true, "add_eos_token": false, "bos_token": "<s>",
    "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<unk>", "legacy": false, "clean_up_tokenization_spaces": false})"));
  EXPECT_EQ(read(to / "special_tokens_map.json"),
            json::parse(R"({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<unk>"})"));
  EXPECT_FALSE(fs::exists(to / "chat_template.jinja"));
}

TEST(TokenizerFiles, TheTemplateThatWasUsedTakesTheOldOnesPlaceAndOtherFieldsStay) {
  const TemporaryFolder from, to;
  fill(from, {{"tokenizer_config.json",
               {{"chat_template", "{{ old }}"},
                {"model_max_length", 77},
                {"bos_token", {{"content", "<s>"}, {"lstrip", true}}},
                {"legacy", true}}},
              {"chat_template.jinja", "{{ older }}"},
              {"chat_template.json", {{"chat_template", "{{ oldest }}"}}},
              {"special_tokens_map.json", {{"eos_token", "</s>"}, {"x", 1}}}});
  TokenizerSource source = find_tokenizer("", "", from.path());
  source.chat_template = "llama-2";
  write_tokenizer_files(to.path(), source);
  const json config = read(to / "tokenizer_config.json");
  const std::string jinja = ChatTemplate::named("llama-2", "<s>", "</s>").jinja();
  EXPECT_EQ(config["chat_template"], jinja);
  EXPECT_EQ(read_text_file(to / "chat_template.jinja"), jinja);
  EXPECT_EQ(config["model_max_length"], 77);
  EXPECT_EQ(config["legacy"], true);
  EXPECT_EQ(config["bos_token"]["lstrip"], true);
  EXPECT_EQ(read(to / "special_tokens_map.json")["x"], 1);
  EXPECT_FALSE(fs::exists(to / "chat_template.json"));
}

/// Every way in which a folder may state its set-up gives a folder that states the same one.
TEST(TokenizerFiles, WrittenFilesEncodeChatsAlike) {
  const json older{{"<|im_start|>", 301}, {"<|im_end|>", 302}};
  const std::map<std::string, std::map<std::string, json>> folders{
      {"none", {}},
      {"decoder", {{"tokenizer_config.json", {{"added_tokens_decoder", chat_tokens}}}}},
      {"older", {{"added_tokens.json", older}}},
      {"older beside settings", {{"added_tokens.json", older}, {"tokenizer_config.json", {{"legacy", true}}}}},
      {"no prefix",
       {{"added_tokens.json", older}, {"tokenizer_config.json", {{"add_prefix_space", false}, {"eos_token", "<s>"}}}}}};
  for (const auto& [name, files] : folders)
    for (const std::string chat : {"zephyr", "chatml", "llama-2", "alpaca"}) {
      const TemporaryFolder from, settings, to;
      fill(from, files);
      write_text_file(settings / "tokenizer_config.json", R"({"legacy": true})");
      for (const std::string& model : {std::string(), settings.path()}) {
        TokenizerSource source = find_tokenizer(from / "tokenizer.model", "", model);
        source.chat_template = chat;
        write_tokenizer_files(to.path(), source);
        const TokenizerSource carried = find_tokenizer("", "", to.path());
        EXPECT_EQ(chat_ids(carried), chat_ids(source)) << name << chat << model;
        EXPECT_EQ(end_of_turn_of(carried), end_of_turn_of(source)) << name << chat << model;
        EXPECT_EQ(chat_template_of(carried), chat_template_of(source));
      }
    }
}

TEST(TokenizerFiles, OlderAddedTokensAreSpecialWhereTheMapSaysSo) {
  const TemporaryFolder from, to;
  fill(from, {{"added_tokens.json", {{"<|im_end|>", 301}, {"word", 302}}},
              {"special_tokens_map.json", {{"additional_special_tokens", {"<|im_end|>"}}}}});
  write_tokenizer_files(to.path(), find_tokenizer("", "", from.path()));
  const json decoder = read(to / "tokenizer_config.json")["added_tokens_decoder"];
  EXPECT_EQ(decoder["301"]["special"], true);
  EXPECT_EQ(decoder["302"]["special"], false);
  EXPECT_EQ(decoder["302"]["content"], "word");
  EXPECT_FALSE(fs::exists(to / "added_tokens.json"));
}

TEST(TokenizerFiles, OlderFilesDoNotShowThrough) {
  const TemporaryFolder from, to;
  fill(from);
  for (const char* name : {"chat_template.jinja", "tokenizer.json", "added_tokens.json", "note.txt"})
    write_text_file(to / name, "{}");
  write_tokenizer_files(to.path(), find_tokenizer("", "", from.path()));
  EXPECT_EQ(names_in(to.path()), (std::vector<std::string>{"note.txt", "special_tokens_map.json", "tokenizer.model",
                                                           "tokenizer_config.json"}));
}

TEST(TokenizerFiles, AnAdaptersTokenizerGoesBeforeTheModelsAndANamedOneBeforeBoth) {
  const TemporaryFolder model, adapter, bare;
  fill(model, {{"tokenizer_config.json", json::object()}});
  write_text_file(adapter / "chat_template.jinja", "x");
  EXPECT_EQ(find_tokenizer("", adapter.path(), model.path()).tokenizer, model.path());
  EXPECT_EQ(find_tokenizer("", adapter.path(), model.path()).settings, adapter.path());
  fill(adapter);
  EXPECT_EQ(find_tokenizer("", adapter.path(), model.path()).tokenizer, adapter.path());
  EXPECT_EQ(find_tokenizer("", "", model.path()).settings, model.path());
  fill(bare);
  EXPECT_EQ(find_tokenizer(bare / "tokenizer.model", adapter.path(), model.path()).tokenizer, bare / "tokenizer.model");
  EXPECT_EQ(find_tokenizer(bare / "tokenizer.model", "", model.path()).settings, model.path());
  EXPECT_EQ(find_tokenizer(bare / "tokenizer.model", "", "").settings, bare.path());
}

TEST(GenerationConfig, StopsAtTheEndOfAnAnswerToo) {
  const TemporaryFolder from, base, to;
  fill(from, {{"tokenizer_config.json", {{"added_tokens_decoder", chat_tokens}}}});
  ModelConfig config = preset_config("llama-tiny");
  TokenizerSource source = find_tokenizer("", "", from.path());
  EXPECT_EQ(stop_ids_of(config, "", source), std::vector<std::int64_t>{2});
  source.chat_template = "chatml";
  EXPECT_EQ(stop_ids_of(config, "", source), (std::vector<std::int64_t>{2, 302}));
  const std::string said = R"({"eos_token_id": [2, 302, 5], "temperature": 0.6})";
  write_text_file(base / "generation_config.json", said);
  EXPECT_EQ(stop_ids_of(config, base.path(), source), (std::vector<std::int64_t>{2, 302, 5}));
  write_generation_config(to.path(), config, base.path(), stop_ids_of(config, base.path(), source));
  EXPECT_EQ(read_text_file(to / "generation_config.json"), said);
  write_text_file(base / "generation_config.json", R"({"eos_token_id": 2, "temperature": 0.6})");
  write_generation_config(to.path(), config, base.path(), stop_ids_of(config, base.path(), source));
  EXPECT_EQ(read(to / "generation_config.json"), json::parse(R"({"eos_token_id": [2, 302], "temperature": 0.6})"));
  config.vocab_size = 302;  // a model without a row for it
  EXPECT_EQ(stop_ids_of(config, "", source), std::vector<std::int64_t>{2});
}

}  // namespace
}  // namespace zero::test
