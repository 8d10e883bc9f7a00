// Conversations and texts: .jsonl, or .json where the input begins as a list; read in small chunks and encoded.
#include "base/error.h"
#include "models/text/tokenizer.h"
#include "tests/fuzz/fuzz_folder.h"
#include "tests/unit/models/small_tokenizer.h"
#include "zero/data/examples/conversation_encoder.h"
#include "zero/data/examples/example_reader.h"

namespace zero {
namespace examples_target {

const Tokenizer& tokenizer() {
  static const TemporaryFolder folder;
  static const Tokenizer loaded = Tokenizer::load(folder.write("tokenizer.model", test::small_tokenizer_model()));
  return loaded;
}

/// By templates known by name, and by one that is run.
const std::vector<ConversationEncoder>& encoders() {
  static const TemporaryFolder folder;
  static const std::vector<ConversationEncoder> made = [] {
    folder.write(
        "chat_template.jinja",
        "{% for m in messages %}{{ m.role }}:{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}{{ "
        "m.content | trim }}{{ eos_token }}{% endfor %}{{ tools | tojson if tools }}{% if add_generation_prompt "
        "%}assistant:{% endif %}");
    folder.write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>"})");
    std::vector<ConversationEncoder> all;
    all.emplace_back(tokenizer(), EncoderOptions{.model_directory = folder.path(), .chat_template = ""});
    all.emplace_back(
        tokenizer(),
        EncoderOptions{.model_directory = folder.path(), .chat_template = "zephyr", .train_on = TrainOn::all});
    return all;
  }();
  return made;
}

void use(const FuzzFiles& files) {
  const std::string& content = files.begin()->second;
  const bool list = without_mark(content).starts_with("[");
  std::set<std::string> ignored;
  const auto take = [&](std::string_view json, const std::string& place) {
    try {
      const Example example = parse_example(json, place, &ignored);
      for (const ConversationEncoder& encoder : encoders()) {
        const EncodedExample encoded = encoder.encode(example);
        if (encoded.ids.size() != encoded.trained.size()) throw InternalError("as many marks as ids");
      }
    } catch (const InputError&) {  // the next one may do
    }
  };
  ExampleReader reader("a", list ? ExampleForm::list : ExampleForm::lines, take, 1 << 16);
  for (std::size_t at = 0; at < content.size(); at += 57) reader.add(std::string_view(content).substr(at, 57));
  reader.finish();
}

const FuzzTarget target(
    "examples",
    {{"examples.jsonl",
      FileForm::json_lines,
      {R"({"role": "user", "content": "a"})", R"({"role": "assistant", "content": "b", "weight": 0})",
       R"({"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]})",
       R"({"role": "tool", "content": "3", "tool_call_id": "1"})", R"({"from": "human", "value": "a"})",
       R"({"from": "gpt", "value": "a", "train": true})", R"([{"type": "text", "text": "a"}])", R"({"text": "a"})",
       R"({"prompt": "a", "completion": "b"})",
       R"({"instruction": "a", "input": "b", "output": "c", "history": [["d", "e"]]})",
       R"({"type": "function", "function": {"name": "f", "parameters": {}}})", R"("system")", R"("\u0000")"}}},
    use);

}  // namespace examples_target
}  // namespace zero
