// A tokenizer.json in a GGUF file: llama.cpp's rules for it, refusals, and the resulting keys.
// benchmarks/compare_llama_cpp shows that llama.cpp finds the same ids with them.
#include "models/formats/gguf/tokenizer/pipeline_form.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json_text.h"
#include "models/formats/gguf/tokenizer/pre_tokenizer_rules.h"
#include "models/formats/gguf/tokenizer/tokenizer_keys.h"
#include "models/formats/gguf_writer.h"
#include "tests/unit/message_of.h"
#include "tests/unit/models/gguf_reader.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace pipeline_form_test {

using nlohmann::json;
using ::testing::HasSubstr;

std::string pipeline(const std::string& name) { return ZERO_TEST_DATA "/pipelines/" + name; }

json file_of(const std::string& name) { return json::parse(read_text_file(pipeline(name) + "/tokenizer.json")); }

bool is_lost(const std::string& piece) { return piece.size() > 1 && piece.find_first_of("\n\t") != std::string::npos; }

/// Renames pieces with newlines and tabs, each to one character, and leaves out the merges to them. For Mistral's
/// tokenizer in the tests newlines and tabs are bytes, so no such piece ever occurs.
void without_lost_pieces(json& file) {
  json vocabulary = json::object(), merges = json::array();
  for (const auto& [piece, id] : file["model"]["vocab"].items()) {
    const int letter = 0xE000 + id.get<int>();
    const std::string other{char(0xE0 | letter >> 12), char(0x80 | (letter >> 6 & 0x3F)), char(0x80 | (letter & 0x3F))};
    vocabulary[is_lost(piece) ? other : piece] = id;
  }
  for (const json& pair : file["model"]["merges"])
    if (!is_lost(pair[0].get<std::string>() + pair[1].get<std::string>())) merges.push_back(pair);
  file["model"]["vocab"] = vocabulary;
  file["model"]["merges"] = merges;
}

/// A tokenizer's folder with changes; Mistral's without lost pieces.
struct Changed {
  Changed(const std::string& name, const std::function<void(json&)>& change) {
    json file = file_of(name);
    if (name == "mistral") without_lost_pieces(file);
    change(file);
    write_text_file(folder / "tokenizer.json", file.dump());
    std::filesystem::copy_file(pipeline(name) + "/tokenizer_config.json", folder / "tokenizer_config.json");
  }
  PipelineForm form() const { return pipeline_form(folder / "tokenizer.json"); }
  std::string refusal() const {
    return message_of<InputError>([&] { form(); });
  }
  TemporaryFolder folder;
};

TEST(PipelineForm, IsTheRuleThatThePipelineIs) {
  const auto pre = [](const char* name) { return pipeline_form(pipeline(name) + "/tokenizer.json").pre; };
  EXPECT_EQ(pre("gpt2"), "gpt-2");
  EXPECT_EQ(pre("llama3"), "llama-bpe");
  EXPECT_EQ(pre("qwen"), "qwen2");
  EXPECT_EQ(Changed("mistral", [](json&) {}).form().pre, "default");
  const auto without_whole_words = [](json& file) { file["model"]["ignore_merges"] = false; };
  EXPECT_EQ(Changed("llama3", without_whole_words).form().pre, "dbrx");
  const auto digits_first = [](json& file) {
    file["pre_tokenizer"] = {{"type", "Sequence"},
                             {"pretokenizers",
                              {{{"type", "Digits"}, {"individual_digits", true}},
                               {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}}}}};
  };
  EXPECT_EQ(Changed("gpt2", digits_first).form().pre, "smollm");
}

TEST(PipelineForm, KnowsTheSameWordsInAnotherSpelling) {
  const auto possessive = [](json& file) {
    file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] =
        R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
  };
  EXPECT_EQ(Changed("llama3", possessive).form().pre, "llama-bpe");
  const auto kept = [](json& file) {
    json& split = file["pre_tokenizer"]["pretokenizers"][0];
    split["behavior"] = "Removed";
    split["invert"] = true;
  };
  EXPECT_EQ(Changed("llama3", kept).form().pre, "llama-bpe");
}

TEST(PipelineForm, EveryRuleHasANameAndStepsOfItsOwn) {
  std::set<std::pair<std::vector<std::string>, bool>> steps;
  std::set<std::string> names;
  for (const PreTokenizerRule& rule : pre_tokenizer_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_TRUE(steps.emplace(rule.steps, rule.whole_words).second) << rule.name;
    EXPECT_EQ(rule.steps.back(), "bytes") << rule.name;
  }
}

TEST(PipelineForm, RefusesByNameWhatLlamaCppWouldTokenizeOtherwise) {
  const auto other_words = [](json& file) {
    file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = R"(\w+|\s+|[^\w\s]+)";
  };
  EXPECT_THAT(Changed("qwen", other_words).refusal(), HasSubstr("none of llama.cpp's that are known here (gpt-2, "));
  const auto whole_words = [](json& file) { file["model"]["ignore_merges"] = true; };
  EXPECT_THAT(Changed("qwen", whole_words).refusal(), HasSubstr("ignore_merges"));
  const auto in_front = [](json& file) { file["pre_tokenizer"]["add_prefix_space"] = true; };
  EXPECT_THAT(Changed("gpt2", in_front).refusal(), HasSubstr("pre_tokenizer"));
  const auto lower = [](json& file) { file["normalizer"] = {{"type", "Lowercase"}}; };
  EXPECT_THAT(Changed("gpt2", lower).refusal(), HasSubstr("llama.cpp normalises nothing"));
  const auto suffix = [](json& file) { file["model"]["end_of_word_suffix"] = "</w>"; };
  EXPECT_THAT(Changed("gpt2", suffix).refusal(), HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(Changed("gpt2", suffix).refusal(), HasSubstr("--tokenizer"));
}

TEST(PipelineForm, ScoresArePossibleWhereEveryWayToPutAPieceTogetherIsAMerge) {
  const PipelineForm form = Changed("mistral", [](json&) {}).form();
  EXPECT_EQ(form.model, "llama");
  EXPECT_TRUE(form.space_in_front);
  const json merges = file_of("mistral")["model"]["merges"];
  const std::string first = merges.front()[0].get<std::string>() + merges.front()[1].get<std::string>(),
                    last = merges.back()[0].get<std::string>() + merges.back()[1].get<std::string>();
  EXPECT_GT(form.scores.at(first), form.scores.at(last));
  const auto one_less = [](json& file) {
    json& list = file["model"]["merges"];
    std::map<std::string, std::size_t> ways;
    for (const json& pair : list) ++ways[pair[0].get<std::string>() + pair[1].get<std::string>()];
    for (std::size_t i = 0; i < list.size(); ++i)
      if (ways[list[i][0].get<std::string>() + list[i][1].get<std::string>()] > 1) return list.erase(i), void();
  };
  EXPECT_THAT(Changed("mistral", one_less).refusal(), HasSubstr("ways to put pieces together"));
  const auto apart = [](json& file) {
    json& list = file["model"]["merges"];
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      const auto piece = [&](std::size_t at) {
        return list[at][0].get<std::string>() + list[at][1].get<std::string>();
      };
      if (piece(i) != piece(i + 1)) continue;
      const json moved = list[i];
      list.erase(i);
      list.push_back(moved);
      return;
    }
  };
  EXPECT_THAT(Changed("mistral", apart).refusal(), HasSubstr("one score for a piece"));
  const auto no_byte = [](json& file) {
    file["model"]["vocab"]["<0x0G>"] = file["model"]["vocab"]["<0x0A>"];
    file["model"]["vocab"].erase("<0x0A>");
  };
  EXPECT_THAT(Changed("mistral", no_byte).refusal(), HasSubstr("<0x0A>"));
  const auto bytes_in_a_piece =
      [](json& file) {  // "\n" is a byte to it, so that "\n\n" never comes; llama.cpp would find it
        json& vocabulary = file["model"]["vocab"];
        const std::string other = "\ue1e3";
        vocabulary["\n\n"] = vocabulary.contains(other) ? vocabulary[other] : json(vocabulary.size());
        vocabulary.erase(other);
      };
  EXPECT_THAT(Changed("mistral", bytes_in_a_piece).refusal(), HasSubstr("no merge gives it, and llama.cpp puts it"));
}

TEST(PipelineForm, SpacesAsGemmaAndAsLlamaHaveThem) {
  const json replace{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
  const auto gemma = [&](json& file) {
    file["normalizer"] = replace;
    file["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}, {"invert", false}};
  };
  EXPECT_FALSE(Changed("mistral", gemma).form().space_in_front);
  const auto metaspace = [](const char* scheme) {
    return [scheme](json& file) {
      file["normalizer"] = nullptr;
      file["pre_tokenizer"] = {
          {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}, {"split", false}};
    };
  };
  EXPECT_TRUE(Changed("mistral", metaspace("first")).form().space_in_front);
  EXPECT_FALSE(Changed("mistral", metaspace("never")).form().space_in_front);
  EXPECT_EQ(Changed("mistral", metaspace("first")).form().notes.size(), 2U);
  const auto other = [](json& file) { file["normalizer"] = {{"type", "NFKC"}}; };
  EXPECT_THAT(Changed("mistral", other).refusal(), HasSubstr("only marks spaces"));
  const auto unmarked = [](json& file) { file["normalizer"] = file["pre_tokenizer"] = json(); };
  EXPECT_THAT(Changed("mistral", unmarked).refusal(), HasSubstr("no pre_tokenizer"));
}

/// The keys of a file with the tokenizer and a model of `rows` tokens.
test::GgufFile written(const TemporaryFolder& folder, const std::string& tokenizer, std::int64_t rows,
                       std::vector<std::int64_t> eos = {}) {
  ModelConfig config;
  config.vocab_size = rows;
  config.eos_token_ids = std::move(eos);
  GgufMetadata metadata;
  GgufTokenizerKeys({tokenizer, tokenizer}, config).add_to(metadata);
  GgufWriter(folder / "a.gguf", metadata, {}).finish();
  return test::GgufFile(folder / "a.gguf");
}

TEST(GgufTokenizerKeys, DescribeBytesAndMerges) {
  const TemporaryFolder folder;
  const json source = file_of("llama3");
  const auto file = written(folder, pipeline("llama3"), 1900);
  EXPECT_EQ(file.texts.at("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(file.texts.at("tokenizer.ggml.pre"), "llama-bpe");
  const auto& tokens = file.text_lists.at("tokenizer.ggml.tokens");
  ASSERT_EQ(tokens.size(), 1900U);
  for (const auto& [piece, id] : source["model"]["vocab"].items()) EXPECT_EQ(tokens[id.get<std::size_t>()], piece);
  const auto& merges = file.text_lists.at("tokenizer.ggml.merges");
  ASSERT_EQ(merges.size(), source["model"]["merges"].size());
  EXPECT_EQ(merges[1], source["model"]["merges"][1][0].get<std::string>() + " " +
                           source["model"]["merges"][1][1].get<std::string>());
  const auto& types = file.number_lists.at("tokenizer.ggml.token_type");
  const std::size_t bos = source["post_processor"]["processors"][1]["special_tokens"]["<|begin_of_text|>"]["ids"][0];
  EXPECT_EQ(types[bos], 3);
  EXPECT_EQ(types[100], 1);
  EXPECT_EQ(types[1899], 5);
  EXPECT_EQ(tokens[1899], "[PAD1899]");
  EXPECT_EQ(file.numbers.at("tokenizer.ggml.bos_token_id"), double(bos));
  EXPECT_EQ(file.numbers.at("tokenizer.ggml.add_bos_token"), 1);
  EXPECT_EQ(file.numbers.at("tokenizer.ggml.add_eos_token"), 0);
  EXPECT_EQ(tokens[std::size_t(file.numbers.at("tokenizer.ggml.eos_token_id"))], "<|eot_id|>");
  EXPECT_EQ(tokens[std::size_t(file.numbers.at("tokenizer.ggml.padding_token_id"))], "<|finetune_right_pad_id|>");
  EXPECT_FALSE(file.number_lists.contains("tokenizer.ggml.scores"));
}

TEST(GgufTokenizerKeys, DescribeUserDefinedTokensAndNoBos) {
  const TemporaryFolder folder;
  const auto file = written(folder, pipeline("qwen"), 1810, {7});
  const auto& tokens = file.text_lists.at("tokenizer.ggml.tokens");
  const auto& types = file.number_lists.at("tokenizer.ggml.token_type");
  const auto type_of = [&](const char* token) {
    return types[std::size_t(std::find(tokens.begin(), tokens.end(), token) - tokens.begin())];
  };
  EXPECT_EQ(type_of("<tool_call>"), 4);
  EXPECT_EQ(type_of("<|im_start|>"), 3);
  EXPECT_EQ(type_of("<|fim_prefix|>"), 3);  // looks special
  EXPECT_EQ(file.numbers.at("tokenizer.ggml.add_bos_token"), 0);
  EXPECT_EQ(file.numbers.at("tokenizer.ggml.eos_token_id"), 7);
}

TEST(GgufTokenizerKeys, DescribePiecesWithScores) {
  const TemporaryFolder folder;
  const Changed mistral("mistral", [](json&) {});
  const auto file = written(folder, mistral.folder.path(), 1800);
  EXPECT_EQ(file.texts.at("tokenizer.ggml.model"), "llama");
  const auto& tokens = file.text_lists.at("tokenizer.ggml.tokens");
  const auto& types = file.number_lists.at("tokenizer.ggml.token_type");
  EXPECT_EQ(tokens[3], "<0x00>");
  EXPECT_EQ(types[3], 6);
  EXPECT_EQ(types[0], 2);  // <unk>
  EXPECT_EQ(types[1], 3);
  EXPECT_EQ(file.number_lists.at("tokenizer.ggml.scores").size(), 1800U);
  EXPECT_EQ(file.numbers.at("tokenizer.ggml.add_space_prefix"), 1);
  EXPECT_EQ(file.numbers.at("tokenizer.ggml.add_bos_token"), 1);
  EXPECT_FALSE(file.text_lists.contains("tokenizer.ggml.merges"));
}

TEST(GgufTokenizerKeys, RefuseWhatDoesNotFit) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<InputError>([&] { written(folder, pipeline("gpt2"), 1000); }), HasSubstr("belong together"));
  Changed without("gpt2", [](json&) {});
  write_text_file(without.folder / "tokenizer_config.json", "{}");
  EXPECT_THAT(message_of<InputError>([&] { written(folder, without.folder.path(), 1600); }),
              HasSubstr("give config.json an eos_token_id"));
}

TEST(GgufTokenizerKeys, ANameWithPhi3IsForItsTokensAlone) {
  ModelConfig config;
  config.vocab_size = 1800;
  const Changed mistral("mistral", [](json&) {});
  const GgufTokenizerKeys plain({mistral.folder.path(), mistral.folder.path()}, config);
  EXPECT_EQ(plain.model_name("run1"), "run1");
  EXPECT_EQ(plain.model_name("my-Phi-3"), "");
  Changed phi("mistral", [](json& file) {
    json token = file["added_tokens"][0];
    token["special"] = true;
    for (const char* name : {"<|endoftext|>", "<|user|>"}) {
      token["content"] = name;
      token["id"] = file["model"]["vocab"].size();
      token["rstrip"] = name == std::string("<|user|>");
      file["model"]["vocab"][name] = token["id"];
      file["added_tokens"].push_back(token);
    }
    for (json& each : file["added_tokens"])
      if (each["content"] == "</s>") each["rstrip"] = true;
  });
  config.vocab_size = 1802;
  const GgufTokenizerKeys keys({phi.folder.path(), phi.folder.path()}, config);
  EXPECT_EQ(keys.model_name("run1"), "run1-phi-3");
  EXPECT_EQ(keys.model_name("phi3-small"), "phi3-small");
}

}  // namespace pipeline_form_test
}  // namespace zero
