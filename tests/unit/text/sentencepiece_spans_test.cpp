#include "models/text/sentencepiece_spans.h"

#include <gmock/gmock.h>
#include <sentencepiece_processor.h>

#include <random>

#include "base/json_text.h"
#include "base/utf8.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/tokenizer.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace sentencepiece_spans_test {

using ::testing::ElementsAre;
using Ids = std::vector<std::int32_t>;
using Spans = std::vector<TextSpan>;

const std::string data = ZERO_TEST_DATA;

std::string unigram() { return read_text_file(data + "/normalisers/nfkc.model"); }
std::string rules() { return read_text_file(data + "/normalisers/rules.model"); }
std::string merges() { return read_text_file(data + "/added-tokens/tokenizer.model"); }

/// A ModelProto that occurs twice is merged, so appended fields count. normalizer_spec of `more`, trainer_spec of
/// `more`.
std::string with_normalizer(std::string model, const std::string& more) {
  return model.append("\x1A").append(1, static_cast<char>(more.size())).append(more);
}
std::string with_trainer(std::string model, const std::string& more) {
  return model.append("\x12").append(1, static_cast<char>(more.size())).append(more);
}

/// A model in a folder, by the project and by SentencePiece itself.
struct Both {
  explicit Both(const std::string& model, const std::string& settings = "{}", const char* file = "tokenizer.model") {
    write_text_file(folder / file, model);
    write_text_file(folder / "tokenizer_config.json", settings);
    tokenizer.emplace(Tokenizer::load(folder.path()));
    chat.emplace(*tokenizer, folder.path());
    EXPECT_TRUE(library.LoadFromSerializedProto(model).ok());
  }
  Ids theirs(const std::string& text) const {
    const auto ids = library.EncodeAsIds(text);
    return {ids.begin(), ids.end()};
  }

  TemporaryFolder folder;
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatTokenizer> chat;
  sentencepiece::SentencePieceProcessor library;
};

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> bits{
      " ",      "  ",     "\n",     "\t",     "the",          "God said",   "a",      "\u2581", "e\u0301",
      "\u00e9", "\uFB01", "AA",     "AAB",    "\u4e2d\u6587", "\U0001F680", "\u00bd", "\u3300", "\u00a0",
      "12",     ".",      "\u200b", "\uff21", "\u1E9B\u0323", "<",          "Lord"};
  std::string text;
  for (auto count = random() % 12; count > 0; --count) text += bits[random() % bits.size()];
  return text;
}

std::vector<std::pair<const char*, std::string>> models() {
  const std::string identity_unigram = with_normalizer(unigram(), std::string("\x12\x00\x20\x00", 4));
  return {{"unigram", unigram()},
          {"unigram with rules", rules()},
          {"unigram, spaces kept", identity_unigram},
          {"unigram without a space in front", with_normalizer(unigram(), std::string("\x18\x00", 2))},
          {"merges without extra spaces", with_normalizer(merges(), std::string("\x20\x01", 2))},
          {"characters", with_trainer(merges(), std::string("\x18\x04", 2))}};
}

/// Added tokens aside, prompts and conversations get SentencePiece's own ids, and its alignment where it has one.
TEST(SentencePieceSpans, IdsAndPlacesAreThoseOfTheLibrary) {
  for (const auto& [name, model] : models()) {
    const Both both(model);
    std::mt19937 random(3);
    std::size_t pieces = 0;
    for (int i = 0; i < 400; ++i) {
      const std::string text = random_text(random);
      const TokenizedText made = both.chat->encode(text);
      ASSERT_EQ(made.ids, both.theirs(text)) << name << ": " << text;
      ASSERT_EQ(made.ids, both.tokenizer->encode(text)) << name << ": as of .txt files: " << text;
      const auto theirs = both.library.EncodeAsImmutableProto(text);
      for (std::size_t at = 0; at < made.spans.size(); ++at) {
        const TextSpan span = made.spans[at];
        const TextSpan told{theirs.pieces(static_cast<int>(at)).begin(), theirs.pieces(static_cast<int>(at)).end()};
        if (told.begin < told.end) {
          EXPECT_EQ(span, told) << name << ": " << text;
        }
        EXPECT_LT(span.begin, span.end) << name << ": " << text;
        EXPECT_LE(span.end, text.size());
        if (at > 0) {
          EXPECT_LE(made.spans[at - 1].begin, span.begin) << name << ": " << text;
        }
        EXPECT_FALSE(utf8_continues(text[span.begin])) << "whole characters";
        EXPECT_FALSE(span.end < text.size() && utf8_continues(text[span.end])) << "whole characters";
        ++pieces;
      }
    }
    EXPECT_GT(pieces, 2000U) << name;
  }
}

TEST(SentencePieceSpans, IdsOfOneCharacterShareItsPlace) {
  const Both bytes(with_normalizer(merges(), std::string("\x20\x01", 2)));
  const TokenizedText rocket = bytes.chat->encode("a\U0001F680");
  ASSERT_GE(rocket.ids.size(), 5U);
  for (std::size_t i = rocket.ids.size() - 4; i < rocket.ids.size(); ++i)
    EXPECT_EQ(rocket.spans[i], (TextSpan{1, 5})) << i;
  const Both ligature(rules());
  const TokenizedText fi = ligature.chat->encode("x\uFB01");  // the rule makes it f and i
  EXPECT_EQ(fi.spans.back(), (TextSpan{1, 4}));
  EXPECT_EQ(fi.ids, ligature.theirs("xfi"));
}

TEST(SentencePieceSpans, TextsBetweenAddedTokensAreTextsOfTheirOwn) {
  const Both both(unigram(), R"({"added_tokens_decoder": {"300": {"content": "<|end|>", "special": true}}})");
  const std::string text = "God said<|end|>  Let there be<|end|>\n";
  const TokenizedText made = both.chat->encode(text);
  Ids expected = both.theirs("God said");
  const std::size_t first = expected.size();
  expected.push_back(300);
  for (const std::int32_t id : both.theirs("  Let there be")) expected.push_back(id);
  expected.push_back(300);
  EXPECT_EQ(made.ids, expected);
  EXPECT_EQ(made.spans[first], (TextSpan{8, 15}));
  EXPECT_GE(made.spans[first + 1].begin, 15U);
  EXPECT_EQ(made.spans.back(), (TextSpan{29, 36}));
  EXPECT_EQ(both.chat->special("<|end|>"), 300);
}

/// They are SentencePiece's to find: what follows one is no text of its own.
TEST(SentencePieceSpans, UserDefinedPiecesAreTheModelsOwn) {
  const std::string piece = std::string("\x0A\x05") + "<sep>" + std::string("\x15\0\0\0\0\x18\x04", 7);
  const Both both(unigram() + "\x0A" + std::string(1, static_cast<char>(piece.size())) + piece);
  const TokenizedText made = both.chat->encode("God<sep>said");
  EXPECT_EQ(made.ids, both.theirs("God<sep>said"));
  EXPECT_THAT(made.ids, ::testing::Contains(300));
}

TEST(SentencePieceSpans, DecodingIsTheLibrarys) {
  for (const auto& [name, model] : models()) {
    const Both both(model);
    std::mt19937 random(4);
    for (int i = 0; i < 200; ++i) {
      const Ids ids = both.theirs(random_text(random));
      std::string theirs = both.library.DecodeIds(std::vector<int>(ids.begin(), ids.end()));
      EXPECT_EQ(both.tokenizer->decode(ids), theirs) << name;
    }
  }
}

TEST(SentencePieceSpans, AFolderMayCallItsModelSpiece) {
  const Both both(unigram(), "{}", "spiece.model");
  EXPECT_EQ(both.tokenizer->model_path(), both.folder / "spiece.model");
  EXPECT_TRUE(Tokenizer::lies_at(both.folder.path()));
  EXPECT_EQ(both.chat->encode("God").ids, both.theirs("God"));
}

}  // namespace sentencepiece_spans_test
}  // namespace zero
