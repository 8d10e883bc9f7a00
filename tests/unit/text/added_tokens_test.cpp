#include "models/text/added_tokens.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "models/text/added_token_finder.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/tokenizer.h"
#include "models/text/word_character.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace added_tokens_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

const std::string folder = ZERO_TEST_DATA "/added-tokens";

/// The small model, with files added to its folder.
struct Folder {
  TemporaryFolder own;
  explicit Folder(const nlohmann::json& files) {
    std::filesystem::copy(folder + "/tokenizer.model", own / "tokenizer.model");
    for (const auto& [name, content] : files.items()) write_text_file(own / name, content.dump());
  }
};

/// Over all code points, as \w of tokenizers 0.23 has them.
TEST(AddedTokens, WordCharactersAreThoseOfTheRegularExpressionsOfTokenizers) {
  std::uint64_t count = 0, sum = 0, squares = 0;
  for (std::uint64_t code = 0; code < 0x110000; ++code) {
    if (!is_word_character(static_cast<char32_t>(code))) continue;
    ++count;
    sum += code;
    squares += code * code;
  }
  EXPECT_EQ(count, 144667U);
  EXPECT_EQ(sum, 15621645388U);
  EXPECT_EQ(squares, 2452845419041572U);
}

TEST(AddedTokens, IdsAndTextAreThoseOfTransformers) {
  const auto cases = parse_json(read_text_file(folder + "/cases.json"), "cases.json");
  ASSERT_EQ(cases.size(), 9u);
  for (const auto& one : cases) {
    const Folder at(one["files"]);
    const Tokenizer tokenizer = Tokenizer::load(at.own.path());
    const ChatTokenizer encoder(tokenizer, at.own.path());
    EXPECT_EQ(tokenizer.bos(), one["bos"].get<int>()) << one["name"];
    EXPECT_EQ(tokenizer.eos(), one["eos"].get<int>()) << one["name"];
    ASSERT_GT(one["texts"].size(), 80u);
    for (const auto& entry : one["texts"]) {
      const auto ids = entry[1].get<Ids>();
      EXPECT_EQ(encoder.encode(entry[0].get<std::string>()).ids, ids) << one["name"] << ": " << entry[0];
    }
  }
}

TEST(AddedTokens, ShowInTextUnlessTheyAreSpecial) {
  const auto cases = parse_json(read_text_file(folder + "/cases.json"), "cases.json");
  for (const auto& one : cases) {
    const Folder at(one["files"]);
    const Tokenizer tokenizer = Tokenizer::load(at.own.path());
    const nlohmann::json config = one["files"].value("tokenizer_config.json", nlohmann::json::object());
    for (const auto& entry : one["texts"]) {
      TextStream stream(tokenizer, config.value("add_prefix_space", true));
      std::string text;
      for (const auto id : entry[1].get<Ids>()) text += stream.next(id);
      EXPECT_EQ(text + stream.finish(), entry[2]) << one["name"] << ": " << entry[0];
    }
  }
}

std::string refusal(const nlohmann::json& files) {
  const Folder at(files);
  try {
    Tokenizer::load(at.own.path());
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AddedTokens, MismatchesAreRefused) {
  const auto listed = [](const nlohmann::json& tokens) {
    return refusal({{"tokenizer_config.json", {{"added_tokens_decoder", tokens}}}});
  };
  EXPECT_THAT(listed({{"421", {{"content", "<x>"}}}}),
              HasSubstr("\"<x>\" has the id 421; ids must follow on the model's 420 without gap"));
  EXPECT_THAT(listed({{"3", {{"content", "<x>"}}}}), HasSubstr("\"<x>\" has the id 3, which is the piece \"<mask>\""));
  EXPECT_THAT(listed({{"420", {{"content", "<x>"}, {"rstrip", 1}}}}),
              HasSubstr("rstrip of token \"<x>\" must be true or false"));
  EXPECT_THAT(listed({{"420", {{"content", ""}}}}), HasSubstr("must be an object that has content"));
  EXPECT_THAT(listed({{"x", {{"content", "a"}}}}), HasSubstr("\"x\" must be an id"));
  EXPECT_THAT(refusal({{"added_tokens.json", {{"<x>", -1}}}}), HasSubstr("must be a small whole number"));
  EXPECT_THAT(refusal({{"tokenizer_config.json", {{"eos_token", "<|stop|>"}}}}),
              HasSubstr("names \"<|stop|>\" as BOS or EOS, which is no token"));
  EXPECT_EQ(refusal({{"tokenizer_config.json", {{"pad_token", "<|pad|>"}}}}), "accepted");
}

TEST(AddedTokens, NullMeansNoMark) {
  const nlohmann::json files = {
      {"tokenizer_config.json", {{"bos_token", nullptr}, {"eos_token", {{"content", "<mask>"}}}}}};
  const Folder at(files);
  const Tokenizer tokenizer = Tokenizer::load(at.own.path());
  EXPECT_FALSE(tokenizer.bos());
  EXPECT_EQ(tokenizer.eos(), 3);
}

/// Like transformers' LlamaTokenizer: a folder that does not say has one, as in older releases.
TEST(AddedTokens, AFolderMaySayThatNoBosStandsInFront) {
  const auto begins_with_bos = [](const nlohmann::json& settings) {
    const nlohmann::json files = {{"tokenizer_config.json", settings}};
    const Folder at(files);
    const Tokenizer tokenizer = Tokenizer::load(at.own.path());
    EXPECT_TRUE(tokenizer.bos());
    return tokenizer.encode("a", {.bos = true}).front() == tokenizer.bos();
  };
  EXPECT_TRUE(begins_with_bos(nlohmann::json::object()));
  EXPECT_TRUE(begins_with_bos({{"add_bos_token", true}}));
  EXPECT_TRUE(begins_with_bos({{"add_bos_token", nullptr}}));
  EXPECT_FALSE(begins_with_bos({{"add_bos_token", false}}));
}

TEST(AddedTokens, StripsBelongToNoPart) {
  const AddedTokenFinder finder({{.id = 7, .content = "<r>", .rstrip = true},
                                 {.id = 8, .content = "<l>", .lstrip = true},
                                 {.id = 9, .content = "w", .single_word = true}});
  EXPECT_THAT(finder.split("a <l><r> \n b"), ElementsAre(TextPart{-1, {0, 1}}, TextPart{8, {2, 5}, {1, 5}},
                                                         TextPart{7, {5, 8}, {5, 11}}, TextPart{-1, {11, 12}}));
  EXPECT_THAT(finder.split("ww w"), ElementsAre(TextPart{-1, {0, 3}}, TextPart{9, {3, 4}}));
  EXPECT_THAT(finder.split(""), ElementsAre());
}

/// The results of Hugging Face's tokenizers if tokens that strip are next to tokens that are white space.
TEST(AddedTokens, WhiteSpaceThatIsTakenIsNotTakenAgain) {
  const AddedTokenFinder strips(
      {{.id = 7, .content = "<r>", .rstrip = true}, {.id = 8, .content = " ", .lstrip = true}});
  EXPECT_THAT(strips.split("<r> a"), ElementsAre(TextPart{7, {0, 3}, {0, 4}}, TextPart{-1, {4, 5}}));
  EXPECT_THAT(strips.split("<r>  "), ElementsAre(TextPart{7, {0, 3}, {0, 5}}));
  const AddedTokenFinder plain({{.id = 7, .content = "<r>", .rstrip = true}, {.id = 8, .content = "\t"}});
  EXPECT_THAT(plain.split("<r>\t"), ElementsAre(TextPart{7, {0, 3}, {0, 4}}, TextPart{8, {3, 4}}));
  EXPECT_THAT(plain.split("<r>\t b"),
              ElementsAre(TextPart{7, {0, 3}, {0, 5}}, TextPart{8, {3, 4}}, TextPart{-1, {4, 6}}));
}

TEST(AddedTokens, AreAWordNextToNonLetters) {
  const AddedTokenFinder finder({{.id = 9, .content = "w", .single_word = true}});
  for (const std::string word : {"A", "z", "_", "7", "\u00e9", "\u0301"}) {
    EXPECT_THAT(finder.split(word + "w"), ElementsAre(::testing::Field(&TextPart::id, -1))) << word;
    EXPECT_THAT(finder.split("w" + word), ElementsAre(::testing::Field(&TextPart::id, -1))) << word;
  }
  for (const std::string other : {"@", "[", "`", "/", ":", "\u00d7"}) {
    EXPECT_EQ(finder.split(other + "w").back().id, 9) << other;
    EXPECT_EQ(finder.split("w" + other).front().id, 9) << other;
  }
}

}  // namespace added_tokens_test
}  // namespace zero
