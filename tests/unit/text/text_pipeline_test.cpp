#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "models/text/pipeline/component.h"
#include "models/text/pipeline/post_processor.h"
#include "models/text/pipeline/text_pipeline.h"

namespace zero {
namespace text_pipeline_test {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

const std::string cases_folder = std::string(ZERO_TEST_DATA) + "/pipelines/";

class TextPipelineGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(TextPipelineGolden, IdsAndTextsAreThoseOfTransformers) {
  const std::string folder = cases_folder + GetParam();
  const TextPipeline pipeline = TextPipeline::load(folder);
  const json cases = parse_json(read_text_file(folder + "/cases.json"), "cases.json");
  ASSERT_GT(cases["encode"].size(), 100U);
  for (const json& one : cases["encode"]) {
    const auto& text = one["text"].get_ref<const std::string&>();
    EXPECT_EQ(pipeline.encode(text, true), one["ids"].get<Ids>()) << text;
    EXPECT_EQ(pipeline.encode(text, false), one["plain"].get<Ids>()) << text;
  }
  for (const char* list : {"encode", "decode"})
    for (const json& one : cases[list]) {
      EXPECT_EQ(pipeline.decode(one["ids"].get<Ids>(), false), one["decoded"]) << one["ids"];
      EXPECT_EQ(pipeline.decode(one["ids"].get<Ids>(), true), one["skipped"]) << one["ids"];
    }
}

INSTANTIATE_TEST_SUITE_P(Pipelines, TextPipelineGolden, ::testing::Values("gpt2", "llama3", "mistral", "qwen"));

TEST(TextPipelineSpans, AreTheOffsetsOfTokenizers) {
  const TextPipeline pipeline = TextPipeline::load(cases_folder + "qwen");
  const LocatedIds composed =
      pipeline.locate("e\u0301 \U0001F999!");  // NFC joins two characters, an id is a part of one
  EXPECT_THAT(composed.ids, ElementsAre(619, 738, 1490, 0));
  EXPECT_THAT(composed.characters, ElementsAre(TextSpan{0, 1}, TextSpan{2, 4}, TextSpan{3, 4}, TextSpan{4, 5}));
  EXPECT_THAT(composed.bytes, ElementsAre(TextSpan{0, 1}, TextSpan{3, 8}, TextSpan{4, 8}, TextSpan{8, 9}));
  const LocatedIds special = pipeline.locate("a  <|im_end|> b");
  EXPECT_THAT(special.ids, ElementsAre(64, 258, 1802, 279));
  EXPECT_THAT(special.bytes, ElementsAre(TextSpan{0, 1}, TextSpan{1, 3}, TextSpan{3, 13}, TextSpan{13, 15}));
}

/// One space in front of a text may be the tokenizer's own; of two the text had at least one.
TEST(TextPipelineSpans, SkipAllSpacesBeforeAFirstToken) {
  const json file = json::parse(R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true})");
  const PostProcessor processor{Component(file, "tokenizer.json", "post_processor")};
  const auto trimmed = [&](std::string_view first) {
    std::vector<TextSpan> spans{{0, 4}, {4, 6}};
    processor.trim({first, "\u0120b"}, spans);
    EXPECT_EQ(spans[1], (TextSpan{5, 6}));
    return spans[0];
  };
  EXPECT_EQ(trimmed("\u0120aaa"), (TextSpan{0, 4}));
  EXPECT_EQ(trimmed("\u0120\u0120aa"), (TextSpan{2, 4}));
  EXPECT_EQ(trimmed("\u0120\u0120\u0120a"), (TextSpan{3, 4}));
}

/// A folder with a modified tokenizer.json of gpt2.
class TextPipelineFile : public ::testing::Test {
 protected:
  void SetUp() override {
    file = parse_json(read_text_file(cases_folder + "gpt2/tokenizer.json"), "tokenizer.json");
    folder = fs::path(::testing::TempDir()) / ("pipeline-" + std::to_string(::getpid()));
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  TextPipeline load() {
    write_text_file(folder / "tokenizer.json", file.dump());
    return TextPipeline::load(folder);
  }
  void expect_refusal(const std::string& what) {
    try {
      load();
      ADD_FAILURE() << "not refused: " << what;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(what));
      EXPECT_THAT(error.what(), HasSubstr("tokenizer.json"));
    }
  }

  json file;
  fs::path folder;
};

TEST_F(TextPipelineFile, UnknownPartsAreRefusedByName) {
  const json whole = file;
  file["pre_tokenizer"]["type"] = "UnicodeScripts";
  expect_refusal("UnicodeScripts");
  file = whole;
  file["pre_tokenizer"]["new_option"] = 1;
  expect_refusal("new_option");
  file = whole;
  file["model"]["dropout"] = 0.1;
  expect_refusal("dropout");
  file = whole;
  file["model"]["type"] = "WordLevel";
  expect_refusal("WordLevel");
  file = whole;
  file["normalizer"] = json::parse(R"({"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""})");
  expect_refusal("(a");
  file = whole;
  const json pair = json::parse(R"({"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 2]})");
  file["post_processor"] = {{"type", "Sequence"}, {"processors", {pair, pair}}};
  expect_refusal("behind another");
  file = whole;
  file["model"]["merges"].push_back("no pair at all");
  expect_refusal("merges");
  file = whole;
  file["model"]["continuing_subword_prefix"] = "#";  // cuts what follows in a character
  file["model"]["merges"] = json::parse(R"([["a", "\u00e9"]])");
  expect_refusal("names or makes");
}

TEST_F(TextPipelineFile, AddedTokensTakeTheirPlaces) {
  const auto add = [&](const char* content, std::int32_t id, const char* flag) {
    json token = file["added_tokens"][0];
    token["content"] = content;
    token["id"] = id;
    token["special"] = false;
    token[flag] = true;
    file["added_tokens"].push_back(token);
  };
  add("<l>", 1501, "lstrip");
  add("<r>", 1502, "rstrip");
  add("<w>", 1503, "single_word");
  const TextPipeline pipeline = load();
  const std::int32_t x = *pipeline.id_of("x");
  EXPECT_THAT(pipeline.encode("x  <l>x", true), ElementsAre(x, 1501, x));
  EXPECT_THAT(pipeline.encode("x<r> \n x", true), ElementsAre(x, 1502, x));
  EXPECT_EQ(pipeline.encode("x<w>x", true).size(), 5U);
  EXPECT_THAT(pipeline.encode("<w>", true), ElementsAre(1503));
}

TEST_F(TextPipelineFile, RegularExpressionsKnowUnicode16) {
  file["pre_tokenizer"] = json::parse(R"({"type": "Split", "pattern": {"Regex": "\\p{L}+"}, "behavior": "Removed",
                                          "invert": false})");
  file["model"]["vocab"] = {{"-", 0}};
  file["added_tokens"] = json::array();
  file["model"]["merges"] = json::array();
  EXPECT_THAT(load().encode("\u1C89-\u1C8A", true), ElementsAre(0));  // letters since 2024
}

}  // namespace text_pipeline_test
}  // namespace zero
