#include "models/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/json_text.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace tokenizer_test {

using Ids = std::vector<std::int32_t>;
using ::testing::HasSubstr;

const std::string folder = ZERO_TEST_DATA "/tinyllama-chat";

const Tokenizer& tokenizer() {
  static const Tokenizer loaded = Tokenizer::load(folder);
  return loaded;
}

/// SentencePiece itself, on the whole text at once.
Ids whole(const std::string& text) {
  static const auto processor = [] {
    auto made = std::make_unique<sentencepiece::SentencePieceProcessor>();
    EXPECT_TRUE(made->Load(folder + "/tokenizer.model").ok());
    return made;
  }();
  const auto ids = processor->EncodeAsIds(text);
  return {ids.begin(), ids.end()};
}

TEST(Tokenizer, GoldenIds) {
  const auto cases = parse_json(read_text_file(folder + "/tokenizer-cases.json"), "cases");
  ASSERT_GT(cases.size(), 30u);
  for (const auto& one : cases) {
    const auto text = one["text"].get<std::string>();
    EXPECT_EQ(tokenizer().encode(text), one["ids"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer().decode(one["ids"].get<Ids>()), text);
  }
}

TEST(Tokenizer, MarksAtBothEnds) {
  EXPECT_EQ(tokenizer().encode("", {.bos = true, .eos = true}), (Ids{1, 2}));
  EXPECT_EQ(tokenizer().encode("Hello", {.bos = true}), (Ids{1, 15043}));
  EXPECT_EQ(tokenizer().vocab_size(), 32000);
  EXPECT_EQ(tokenizer().piece(15043), "\u2581Hello");
  EXPECT_EQ(tokenizer().id_of("\u2581Hello"), 15043);
  EXPECT_FALSE(tokenizer().id_of("no such piece"));
  EXPECT_EQ(tokenizer().type(1), TokenType::control);
  EXPECT_EQ(tokenizer().type(13), TokenType::byte);
  EXPECT_EQ(tokenizer().decode({15043, 32000, 2787}), tokenizer().decode({15043, 2787}));
  TextStream stream(tokenizer(), true);
  EXPECT_EQ(stream.next(32000), "");
  EXPECT_EQ(stream.next(15043), "Hello");
  EXPECT_THROW(stream.next(-1), InputError);
  EXPECT_THROW(tokenizer().decode({-1}), InputError);
}

/// Text with all that could matter at a cut: runs of spaces and newlines, space marks, characters of all lengths,
/// broken UTF-8.
std::string hard_text(std::mt19937& random, std::size_t bytes) {
  const std::vector<std::string> bits{
      " ",        " ", "  ",  "\n",     "\n\n",         "\t",     "the",          "God",        "a",
      "'s",       ",", ".\n", "\u2581", "\u2581\u2581", "\u00e9", "\u4e2d\u6587", "\U0001F680", "\xff",
      "\xe2\x96", "0", "12",  "<s>",    "\r\n",         "\u00a0", " \n ",         "ing",        std::string("\0", 1)};
  std::string text;
  while (text.size() < bytes) text += bits[random() % bits.size()];
  return text;
}

TEST(Tokenizer, CutTextHasTheIdsOfTheWhole) {
  EXPECT_EQ(tokenizer().next_cut("a\nb", 0), 1);  // it does cut
  EXPECT_EQ(tokenizer().next_cut("a b", 0), 1);
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const std::string text = hard_text(random, 100'000);
    ASSERT_EQ(tokenizer().encode(text), whole(text)) << round;
  }
  EXPECT_EQ(tokenizer().encode(std::string(60'000, 'x')), whole(std::string(60'000, 'x')));
  EXPECT_EQ(tokenizer().encode(std::string(60'000, ' ')), whole(std::string(60'000, ' ')));
}

TEST(Tokenizer, StreamingGivesTheSameTextAsDecoding) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    Ids ids;
    for (int i = 0; i < 50; ++i)
      ids.push_back(
          static_cast<std::int32_t>(random() % 2 ? 3 + random() % 256 : random() % 32000));  // many single bytes
    TextStream stream(tokenizer(), true);
    std::string text;
    for (const auto id : ids) {
      const std::string more = stream.next(id);
      for (const char c : more) EXPECT_NE(static_cast<unsigned char>(c), 0xFF);
      text += more;
    }
    text += stream.finish();
    EXPECT_EQ(text, tokenizer().decode(ids));
  }
  TextStream stream(tokenizer(), true);  // a rocket in four bytes: nothing before the last
  for (const int id : {243, 162, 157}) EXPECT_EQ(stream.next(id), "");
  EXPECT_EQ(stream.next(131), "\U0001F680");
  EXPECT_EQ(stream.next(243), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  TextStream later(tokenizer(), false);
  EXPECT_EQ(later.next(15043), " Hello");
}

TEST(Tokenizer, TokensThatTheFolderAdds) {
  const TemporaryFolder own;
  write_text_file(own / "tokenizer.model", read_text_file(folder + "/tokenizer.model"));
  write_text_file(
      own / "tokenizer_config.json",
      R"({"added_tokens_decoder": {"2": {"content": "</s>"}, "32000": {"content": "<|im_start|>", "special": true}, "32001": {"content": "<tool>"}}})");
  const Tokenizer wider = Tokenizer::load(own.path());
  EXPECT_EQ(wider.vocab_size(), 32002);
  EXPECT_EQ(wider.id_of("<tool>"), 32001);
  EXPECT_EQ(wider.decode({32000, 1792, 32001}), "user<tool>");
  EXPECT_NE(wider.hash(), tokenizer().hash());
  write_text_file(own / "tokenizer_config.json", R"({"added_tokens_decoder": {"32005": {"content": "<x>"}}})");
  EXPECT_THROW(Tokenizer::load(own.path()), InputError);
}

TEST(Tokenizer, BrokenModelsAreRefused) {
  const TemporaryFolder own;
  const auto refusal = [&](const std::string& content) -> std::string {
    write_text_file(own / "tokenizer.model", content);
    try {
      Tokenizer::load(own.path());
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string model = read_text_file(folder + "/tokenizer.model");
  EXPECT_EQ(refusal(model), "accepted");
  EXPECT_THAT(refusal(""), HasSubstr("no pieces"));
  EXPECT_THAT(refusal("{\"model\": 1}"), HasSubstr("tokenizer.model of SentencePiece"));
  EXPECT_THAT(refusal(model.substr(0, model.size() - 3)), HasSubstr("cut short"));
  EXPECT_THAT(refusal(std::string(200, '\xff')), HasSubstr("SentencePiece"));
  const auto of_path = [](const std::string& path) { return message_of<InputError>([&] { Tokenizer::load(path); }); };
  for (const char* name : {"absent", "absent.json"})
    EXPECT_THAT(of_path(own / name), HasSubstr(std::string(name) + ": there is no such file or folder"));
  EXPECT_THAT(of_path(ZERO_TEST_DATA),
              HasSubstr("holds no tokenizer: looked for tokenizer.json, tokenizer.model or spiece.model"));
}

}  // namespace tokenizer_test
}  // namespace zero
