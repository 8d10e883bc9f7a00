// The tokenizer of a GGUF file: what went in comes out, ids and chats alike.
#include "models/formats/gguf/gguf_tokenizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/json_text.h"
#include "models/families/families.h"
#include "models/formats/gguf_model.h"
#include "models/formats/gguf_writer.h"
#include "models/formats/tokenizer_files.h"
#include "models/initial_weights.h"
#include "models/text/tokenizer.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using testing::HasSubstr;

TEST(GgufTokenizer, GivesTheIdsAndTheTemplateOfTheFolderThatItWasMadeOf) {
  const std::string source = ZERO_TEST_DATA "/tinyllama-chat";
  const TemporaryFolder folder;
  ModelConfig config = preset_config("llama-tiny");
  config.vocab_size = 32064;  // rows without a token
  config.num_hidden_layers = 1;
  const Model model = make_model(config);
  RandomWeights weights(model, 0);
  write_gguf(folder / "a.gguf", model, weights, {.tokenizer = find_tokenizer("", "", source)});
  const GgufFile file(folder / "a.gguf");
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

/// A file with these metadata and no tensor to speak of.
GgufFile file_of(const TemporaryFolder& folder, const GgufMetadata& metadata) {
  GgufWriter writer(folder / "b.gguf", metadata, {{"a", {1}, GgmlType::f32}});
  writer.append(at::zeros({1}));
  writer.finish();
  return GgufFile(folder / "b.gguf");
}

TEST(GgufTokenizer, TellsOfOtherKindsAndOfListsThatDoNotFit) {
  const TemporaryFolder folder;
  GgufMetadata other;
  other.add("tokenizer.ggml.model", "gpt2");
  EXPECT_THAT(why_no_tokenizer(file_of(folder, other)), HasSubstr("\"gpt2\""));
  EXPECT_EQ(gguf_tokenizer_folder(file_of(folder, other)), "");
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
