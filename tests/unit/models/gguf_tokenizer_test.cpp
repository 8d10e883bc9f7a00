// The tokenizer of a GGUF file gives the same ids and chats as the one it was made from.
#include "models/formats/gguf/tokenizer/gguf_tokenizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/families/families.h"
#include "models/formats/gguf_model.h"
#include "models/formats/gguf_writer.h"
#include "models/formats/tokenizer_files.h"
#include "models/initial_weights.h"
#include "models/text/pipeline/text_pipeline.h"
#include "models/text/tokenizer.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using ::testing::HasSubstr;

/// A file of a small model with the tokenizer of a folder.
GgufFile written(const std::string& path, ModelConfig config, const std::string& tokenizer) {
  config.num_hidden_layers = 1;
  const Model model = make_model(config);
  RandomWeights weights(model, 0);
  write_gguf(path, model, weights, {.tokenizer = find_tokenizer("", "", tokenizer)});
  return GgufFile(path);
}

TEST(GgufTokenizer, GivesTheIdsAndTheTemplateOfTheFolderThatItWasMadeOf) {
  const std::string source = ZERO_TEST_DATA "/tinyllama-chat";
  const TemporaryFolder folder;
  ModelConfig config = preset_config("llama-tiny");
  config.vocab_size = 32064;  // rows without a token
  const GgufFile file = written(folder / "a.gguf", config, source);
  ASSERT_EQ(why_no_tokenizer(file), "");
  const std::string made = gguf_tokenizer_folder(file);
  EXPECT_EQ(gguf_tokenizer_folder(file), made);
  const Tokenizer want = Tokenizer::load(source), got = Tokenizer::load(made);
  for (const char* text :
       {"In the beginning", " two  spaces\n\tand a tab", "h\u00e9llo \u4e16\u754c \U0001F600", "</s> is text", ""})
    for (const bool bos : {false, true})
      EXPECT_EQ(got.encode(text, {.bos = bos}), want.encode(text, {.bos = bos})) << text;
  EXPECT_EQ(got.vocab_size(), want.vocab_size());
  EXPECT_EQ(got.bos(), want.bos());
  EXPECT_EQ(got.eos(), want.eos());
  EXPECT_EQ(chat_template_of(find_tokenizer("", "", made)), chat_template_of(find_tokenizer("", "", source)));
  std::filesystem::remove_all(made);
}

constexpr const char* texts[] = {
    "In the beginning", " two  spaces\n\tand a tab",      "h\u00e9llo \u4e16\u754c \U0001F600", "",
    "12345 it's",       "<|im_start|>user\nHi<|im_end|>", "caf\u00e9 don't WON'T\r\n\r\n  x"};

// Byte-level merges there and back, for each rule with files here.
TEST(GgufTokenizer, GivesTheIdsOfATokenizerJsonToo) {
  for (const std::string name : {"gpt2", "llama3", "qwen"}) {
    const std::string source = ZERO_TEST_DATA "/pipelines/" + name;
    const Tokenizer want = Tokenizer::load(source);
    const TemporaryFolder folder;
    ModelConfig config = preset_config("llama-tiny");
    config.vocab_size = want.vocab_size() + 3;  // rows without a token
    config.bos_token_id = want.bos();
    config.eos_token_ids = {*want.eos()};
    const GgufFile file = written(folder / "a.gguf", config, source);
    ASSERT_EQ(why_no_tokenizer(file), "");
    const std::string made = gguf_tokenizer_folder(file);
    const Tokenizer got = Tokenizer::load(made);
    for (const char* text : texts) {
      const std::vector<std::int32_t> ids = want.pipeline()->encode(text, true);
      EXPECT_EQ(got.pipeline()->encode(text, true), ids) << name << text;
      EXPECT_EQ(got.decode(ids), want.decode(ids)) << name << text;
    }
    EXPECT_EQ(got.opening(), want.opening()) << name;
    EXPECT_EQ(got.eos(), want.eos()) << name;
    EXPECT_EQ(chat_template_of(find_tokenizer("", "", made)), chat_template_of(find_tokenizer("", "", source))) << name;
    // and on into another file: the same keys
    const GgufFile again = written(folder / "b.gguf", config, made);
    for (const char* key : {"tokens", "merges", "pre", "token_type", "add_bos_token"})
      EXPECT_EQ(again.metadata().at(text("tokenizer.ggml.", key)), file.metadata().at(text("tokenizer.ggml.", key)))
          << name;
    std::filesystem::remove_all(made);
  }
}

/// A file with these metadata and no tensor to speak of.
GgufFile file_of(const TemporaryFolder& folder, const GgufMetadata& metadata) {
  GgufWriter writer(folder / "b.gguf", metadata, {{"a", {1}, GgmlType::f32}});
  writer.append(at::zeros({1}));
  writer.finish();
  return GgufFile(folder / "b.gguf");
}

GgufMetadata byte_pairs(const std::string& pre, const std::vector<std::string>& tokens,
                        const std::vector<std::int32_t>& types) {
  GgufMetadata metadata;
  metadata.add("tokenizer.ggml.model", "gpt2");
  metadata.add("tokenizer.ggml.pre", pre);
  metadata.add("tokenizer.ggml.tokens", tokens);
  metadata.add("tokenizer.ggml.token_type", types);
  metadata.add("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  return metadata;
}

// BOS and EOS follow the file, or else llama.cpp's rule.
TEST(GgufTokenizer, EdgesAreThoseOfTheFileOrOfItsRule) {
  const TemporaryFolder folder;
  const auto ids = [&](const std::string& pre, std::optional<bool> bos, std::optional<bool> eos) {
    GgufMetadata metadata = byte_pairs(pre, {"a", "b", "ab", "<s>", "</s>", "[PAD5]"}, {1, 1, 1, 3, 3, 5});
    metadata.add_uint32("tokenizer.ggml.bos_token_id", 3);
    metadata.add_uint32("tokenizer.ggml.eos_token_id", 4);
    if (bos) metadata.add_bool("tokenizer.ggml.add_bos_token", *bos);
    if (eos) metadata.add_bool("tokenizer.ggml.add_eos_token", *eos);
    const std::string made = gguf_tokenizer_folder(file_of(folder, metadata));
    const Tokenizer tokenizer = Tokenizer::load(made);
    std::filesystem::remove_all(made);
    return tokenizer.pipeline()->encode("ab", true);
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(ids("qwen2", {}, {}), (Ids{2}));
  EXPECT_EQ(ids("llama-v3", {}, {}), (Ids{3, 2}));
  EXPECT_EQ(ids("llama-bpe", false, {}), (Ids{2}));
  EXPECT_EQ(ids("qwen2", true, true), (Ids{3, 2, 4}));
}

// SmolLM2 has its special tokens in front.
TEST(GgufTokenizer, TokensKeepTheirIdsWhereverTheyStand) {
  const TemporaryFolder folder;
  GgufMetadata metadata = byte_pairs("smollm", {"<s>", "</s>", "[PAD]", "a", "b", "ab", "<u>"}, {3, 3, 5, 1, 1, 1, 4});
  const std::string made = gguf_tokenizer_folder(file_of(folder, metadata));
  const Tokenizer tokenizer = Tokenizer::load(made);
  std::filesystem::remove_all(made);
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(tokenizer.pipeline()->encode("<s>ab<u>b</s>", true), (Ids{0, 5, 6, 4, 1}));
  EXPECT_EQ(tokenizer.decode(Ids{5, 6, 4}), "ab<u>b");
}

TEST(GgufTokenizer, RefusesOtherKindsAndMismatchedLists) {
  const TemporaryFolder folder;
  GgufMetadata other;
  other.add("tokenizer.ggml.model", "bert");
  EXPECT_THAT(why_no_tokenizer(file_of(folder, other)), HasSubstr("\"bert\""));
  EXPECT_EQ(gguf_tokenizer_folder(file_of(folder, other)), "");
  EXPECT_THAT(why_no_tokenizer(file_of(folder, byte_pairs("viking", {}, {}))),
              ::testing::AllOf(HasSubstr("\"viking\""), HasSubstr("known here are gpt-2, ")));
  const auto refusal = [&](const GgufMetadata& metadata) {
    const GgufFile file = file_of(folder, metadata);
    return message_of<InputError>([&] { gguf_tokenizer_files(file); });
  };
  EXPECT_THAT(refusal(byte_pairs("qwen2", {"a", "b"}, {1})), HasSubstr("one length"));
  EXPECT_THAT(refusal(byte_pairs("qwen2", {"a", "a"}, {1, 1})), HasSubstr("\"a\" twice"));
  EXPECT_THAT(refusal(byte_pairs("qwen2", {"a"}, {9})), HasSubstr("types are 1 to 6"));
  EXPECT_THAT(refusal(byte_pairs("qwen2", {"a", "\xff"}, {1, 1})), HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(why_no_tokenizer(file_of(folder, byte_pairs("\xff", {}, {}))), HasSubstr("known here are gpt-2, "));
  EXPECT_THAT(why_no_tokenizer(file_of(folder, {})), HasSubstr("no tokenizer"));
  GgufMetadata broken;
  broken.add("tokenizer.ggml.model", "llama");
  broken.add("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "a"});
  broken.add("tokenizer.ggml.scores", std::vector<float>{0});
  broken.add("tokenizer.ggml.token_type", std::vector<std::int32_t>{2, 1});
  const GgufFile file = file_of(folder, broken);
  EXPECT_THAT(message_of<InputError>([&] { gguf_tokenizer_files(file); }), HasSubstr("one length"));
}

}  // namespace
}  // namespace zero
