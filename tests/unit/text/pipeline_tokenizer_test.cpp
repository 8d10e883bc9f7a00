#include <gmock/gmock.h>

#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/json_text.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/pipeline/text_pipeline.h"
#include "models/text/tokenizer.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace pipeline_tokenizer_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ids = std::vector<std::int32_t>;

const std::string data = ZERO_TEST_DATA;
const std::string folders = data + "/pipelines/";

class PipelineTokenizer : public ::testing::TestWithParam<const char*> {
 protected:
  const Tokenizer tokenizer = Tokenizer::load(folders + GetParam());
};

const std::string sample =
    "In the beginning  was line 12, and it WENT on.\n\n\tgr\u00fc\u00df dich \u4f60\u597d, \U0001F999 don't stop; \n x <|im_end|> y\n";

TEST_P(PipelineTokenizer, TextAndChatAreOfOneTokenizer) {
  const ChatTokenizer chat(tokenizer, folders + GetParam());
  EXPECT_EQ(chat.encode(sample).ids, tokenizer.encode(sample));
  EXPECT_EQ(tokenizer.encode(sample), tokenizer.pipeline()->encode(sample, false));
  EXPECT_NE(tokenizer.hash(), 0U);
}

TEST_P(PipelineTokenizer, CutsChangeNoId) {
  std::string text;
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) text += sample.substr(0, random() % sample.size()) + (i % 5 ? " word" : "\n");
  while (!text.empty() && (text.back() & 0x80)) text.pop_back();
  std::string valid;  // substr cuts characters
  for (const char c : text)
    if (!(c & 0x80)) valid += c;
  const Ids whole = tokenizer.encode(valid);
  Ids parts;
  int cuts = 0;
  std::string_view rest = valid;
  for (bool inside = false; !rest.empty(); inside = true) {
    const std::size_t cut = tokenizer.next_cut(rest, 100);
    const Ids ids = tokenizer.encode(rest.substr(0, cut), {.inside = inside});
    parts.insert(parts.end(), ids.begin(), ids.end());
    rest.remove_prefix(cut);
    ++cuts;
  }
  EXPECT_EQ(parts, whole);
  EXPECT_GT(cuts, 50);
}

TEST_P(PipelineTokenizer, IdsBecomeTextAsTheyCome) {
  const Ids ids = tokenizer.encode(sample);
  const std::string whole = tokenizer.decode(ids);
  for (const bool at_start : {true, false}) {
    TextStream stream(tokenizer, at_start);
    std::string text;
    for (const std::int32_t id : ids) {
      const std::string more = stream.next(id);
      EXPECT_EQ(more.find("\uFFFD"), std::string::npos);
      text += more;
    }
    text += stream.finish();
    if (!at_start && text.starts_with(' ') && !whole.starts_with(' ')) text.erase(0, 1);
    EXPECT_EQ(text, whole) << at_start;
  }
  EXPECT_EQ(tokenizer.decode({static_cast<std::int32_t>(tokenizer.vocab_size())}), "");
  EXPECT_THROW(tokenizer.decode({-1}), InputError);
}

INSTANTIATE_TEST_SUITE_P(Pipelines, PipelineTokenizer, ::testing::Values("gpt2", "llama3", "mistral", "qwen"));

TEST(PipelineTokenizerMarks, AreThoseOfThePostProcessorAndEosAfterADocument) {
  const Tokenizer llama = Tokenizer::load(folders + "llama3"), gpt = Tokenizer::load(folders + "gpt2/tokenizer.json"),
                  qwen = Tokenizer::load(folders + "qwen");
  EXPECT_THAT(llama.opening(), ElementsAre(*llama.bos()));
  EXPECT_THAT(llama.closing(), ElementsAre(*llama.eos()));
  EXPECT_THAT(gpt.opening(), IsEmpty());  // it has a BOS and puts none
  EXPECT_THAT(gpt.closing(), ElementsAre(*gpt.eos()));
  EXPECT_EQ(qwen.bos(), std::nullopt);
  EXPECT_THAT(qwen.closing(), ElementsAre(*qwen.eos()));
  EXPECT_EQ(qwen.type(*qwen.eos()), TokenType::control);
}

TEST(PipelineTokenizerFolder, LlamaTokenizerWithBothFilesStaysAsItIs) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / ("both-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  fs::copy(data + "/tinyllama-chat/tokenizer.model", folder);
  fs::copy(folders + "llama3/tokenizer.json", folder);
  const auto is_json = [&](const std::string& of_class) {
    write_text_file(folder / "tokenizer_config.json", "{\"added_tokens_decoder\": {}" + of_class + "}");
    EXPECT_EQ(Tokenizer::load_sentencepiece(folder.string()).vocab_size(), 32000);
    const bool json = Tokenizer::load(folder.string()).pipeline() != nullptr;
    EXPECT_EQ(Tokenizer::is_json(folder.string()), json);
    return json;
  };
  EXPECT_FALSE(is_json(""));
  EXPECT_FALSE(is_json(R"(, "tokenizer_class": "LlamaTokenizerFast")"));
  EXPECT_TRUE(is_json(R"(, "tokenizer_class": "PreTrainedTokenizerFast")"));
  fs::remove_all(folder);
}

TEST(PipelineTokenizerFolder, FilesUnderOtherNamesAreRefused) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / ("named-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  fs::copy(folders + "llama3/tokenizer.json", folder / "tokenizer.json");
  fs::copy(folders + "gpt2/tokenizer.json", folder / "tokenizer-v2.json");
  EXPECT_THROW(Tokenizer::load((folder / "tokenizer-v2.json").string()), InputError);
  fs::remove_all(folder);
}

TEST(PipelineTokenizerFolder, HashDependsOnTheIds) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / ("split-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  fs::copy(folders + "llama3/tokenizer.json", folder);
  write_text_file(folder / "tokenizer_config.json", "{}");
  const std::uint64_t plain = Tokenizer::load(folder.string()).hash();
  write_text_file(folder / "tokenizer_config.json", R"({"split_special_tokens": true})");
  EXPECT_NE(Tokenizer::load(folder.string()).hash(), plain);
  fs::remove_all(folder);
}

TEST(PipelineTokenizerCuts, FollowLettersOfEveryScript) {
  const Tokenizer tokenizer = Tokenizer::load(folders + "qwen");
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "Привет, мир и люди ";
  EXPECT_LT(tokenizer.next_cut(text, 20000), 21000U);
}

/// A decoder may take back a space that it returned: the text continues after it.
TEST(PipelineTokenizerStream, GoesOnWhereASpaceIsTakenBack) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", read_text_file(folders + "gpt2/tokenizer.json"));
  folder.write(
      "tokenizer_config.json",
      R"({"clean_up_tokenization_spaces": true, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": true})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  const auto id = [&](const char* piece) { return *tokenizer.id_of(piece); };
  EXPECT_EQ(tokenizer.decode({id("x"), id("\u0120"), id("."), id("y")}), "x.y");
  TextStream stream(tokenizer, true);
  EXPECT_EQ(stream.next(id("x")), "x");
  EXPECT_EQ(stream.next(id("\u0120")), " ");
  EXPECT_EQ(stream.next(id(".")), ".");
  EXPECT_EQ(stream.next(id("y")), "y");
  EXPECT_EQ(stream.finish(), "");
}

TEST(PipelineTokenizerFolder, AMarkThatTheTokenizerLacksCausesAWarning) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", read_text_file(folders + "gpt2/tokenizer.json"));
  const auto refusal = [&](const std::string& settings) {
    folder.write("tokenizer_config.json", settings);
    return message_of<InputError>([&] { Tokenizer::load(folder.path()); });
  };
  const auto message = ::testing::AllOf(::testing::HasSubstr("tokenizer_config.json names \"<|end|>\" as BOS or EOS"),
                                        ::testing::HasSubstr("which tokenizer.json does not have"));
  EXPECT_THAT(refusal(R"({"eos_token": "<|end|>"})"), message);
  EXPECT_THAT(refusal(R"({"bos_token": {"content": "<|end|>"}})"), message);
  folder.write(
      "tokenizer_config.json",
      R"({"eos_token": "<|end|>", "added_tokens_decoder": {"1501": {"content": "<|end|>", "special": true}}})");
  EXPECT_EQ(Tokenizer::load(folder.path()).eos(), 1501);
}

}  // namespace pipeline_tokenizer_test
}  // namespace zero
