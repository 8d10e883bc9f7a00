// A folder with a tokenizer.json: texts are encoded, located and decoded, conversations cut.
#include "base/error.h"
#include "models/formats/gguf/tokenizer/pipeline_form.h"
#include "models/formats/tokenizer_files.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/pipeline/text_pipeline.h"
#include "models/text/tokenizer.h"
#include "tests/fuzz/fuzz_folder.h"
#include "tests/fuzz/fuzz_words.h"

namespace zero {
namespace tokenizer_json_target {

void use(const FuzzFiles& files) {
  const std::string folder = FuzzFolder::with(files).path();
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const std::shared_ptr<const TextPipeline> pipeline = tokenizer.pipeline();
  std::vector<std::int32_t> some{0, 1, 2, 255, 256, 300, 1 << 20, 2147483647};
  for (const std::string& text : hard_texts()) {
    const std::vector<std::int32_t> ids =
        tokenizer.encode(text, {.bos = tokenizer.bos().has_value(), .eos = tokenizer.eos().has_value()});
    tokenizer.decode(ids);
    tokenizer.next_cut(text, 1);
    some.insert(some.end(), ids.begin(), ids.end());
    if (!pipeline) continue;
    const LocatedIds located = pipeline->locate(text);
    if (located.bytes.size() != located.ids.size() || located.characters.size() != located.ids.size())
      throw InternalError("as many spans as ids");
    for (const TextSpan& span : located.bytes)
      if (span.begin > span.end || span.end > text.size()) throw InternalError("a span outside the text");
  }
  tokenizer.decode(some);
  const ChatTokenizer chat(tokenizer, folder);
  for (const TextSpan& span : chat.encode(hard_texts().front()).spans)
    if (span.begin > span.end || span.end > hard_texts().front().size()) throw InternalError("a span outside the text");
  encoding_rules_of({folder, folder, ""});
  tokenizer_config_of({folder, folder, ""});
  try {
    pipeline_form(tokenizer.model_path());
  } catch (const InputError&) {  // llama.cpp does less
  }
}

std::vector<std::string> words() {
  std::vector<std::string> texts;
  for (const auto& part : tokenizer_parts()) texts.push_back(part.dump());
  return texts;
}

const FuzzTarget target("tokenizer_json",
                        {{"tokenizer.json", FileForm::json, words()},
                         {"tokenizer_config.json",
                          FileForm::json,
                          {R"("PreTrainedTokenizerFast")", R"("LlamaTokenizer")", "true",
                           R"({"5": {"content": "th", "lstrip": true, "special": true}})", R"({"content": "<s>"})",
                           R"("a")"}},
                         {"special_tokens_map.json", FileForm::json, {R"({"content": "<s>"})", R"(["a", "th"])"}},
                         {"added_tokens.json", FileForm::json, {"5", R"({"<x>": 9})"}}},
                        use);

}  // namespace tokenizer_json_target
}  // namespace zero
