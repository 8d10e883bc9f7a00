// A folder with a tokenizer.model, which SentencePiece trusts: what it is given was looked at before.
#include "base/error.h"
#include "models/formats/gguf/tokenizer/gguf_vocabulary.h"
#include "models/formats/tokenizer_files.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/tokenizer.h"
#include "tests/fuzz/fuzz_folder.h"
#include "tests/fuzz/fuzz_words.h"

namespace zero {
namespace sentencepiece_target {

void use(const FuzzFiles& files) {
  const std::string folder = FuzzFolder::with(files).path();
  const Tokenizer tokenizer = Tokenizer::load(folder);
  std::vector<std::int32_t> some{0, 1, 2, 255, 256, 300, 1 << 20, 2147483647};
  for (const std::string& text : hard_texts()) {
    const std::vector<std::int32_t> ids = tokenizer.encode(text, {.bos = true});
    tokenizer.decode(ids);
    tokenizer.next_cut(text, 1);
    some.insert(some.end(), ids.begin(), ids.end());
  }
  tokenizer.decode(some);
  for (std::int64_t id = 0; id < tokenizer.model_size(); ++id)
    tokenizer.score(id), tokenizer.type(id), tokenizer.piece(id);
  const ChatTokenizer chat(tokenizer, folder);
  for (const std::string& text : hard_texts())
    for (const TextSpan& span : chat.encode(text).spans)
      if (span.begin > span.end || span.end > text.size()) throw InternalError("a span outside the text");
  tokenizer_config_of({folder, folder, ""});
  encoding_rules_of({folder, folder, ""});
  try {
    gguf_vocabulary(folder, 100'000);
  } catch (const InputError&) {  // llama.cpp does less
  }
}

const FuzzTarget target("sentencepiece",
                        {{"tokenizer.model", FileForm::protobuf},
                         {"tokenizer_config.json",
                          FileForm::json,
                          {"true", "false", R"("LlamaTokenizer")", R"({"300": {"content": "<x>", "rstrip": true}})",
                           R"("</s>")"}},
                         {"added_tokens.json", FileForm::json, {"300", R"({"<x>": 300})"}}},
                        use);

}  // namespace sentencepiece_target
}  // namespace zero
