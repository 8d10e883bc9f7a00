// A chat template with a conversation: read, rendered, and its answers found.
#include <nlohmann/json.hpp>
#include "tests/fuzz/fuzz_folder.h"

#include "base/error.h"
#include "base/json_text.h"
#include "models/text/conversation/answer_spans.h"
#include "models/text/conversation/lost_text.h"

namespace zero {
namespace chat_template_target {

void use(const FuzzFiles& files) {
  const ConversationTemplate chat({content_of(files, "chat_template.jinja"), "the input"},
                                  {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  end_of_answer(chat, "</s>");
  try {
    render_answers(chat,
                   {{"system", "s"}, {"user", "q \u00e9"}, {"assistant", "a\n"}, {"user", "?"}, {"assistant", "b"}});
  } catch (const InputError&) {  // the input's own conversation may do
  }
  try {
    require_written(chat, {{"system", "s"}, {"user", "q"}, {"assistant", "<think>t</think>a"}}, {});
  } catch (const InputError&) {
  }
  chat.render(parse_ordered_json(content_of(files, "request.json"), "request.json"));
}

const FuzzTarget target(
    "chat_template",
    {{"chat_template.jinja", FileForm::jinja},
     {"request.json",
      FileForm::json,
      {R"({"role": "user", "content": "a"})", R"({"role": "assistant", "content": [{"type": "text", "text": "b"}]})",
       R"({"role": "assistant", "content": "c", "reasoning_content": "d"})",
       R"({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}]})",
       R"([{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {"type": "string"}}}}}])",
       "true", R"({"variables": {"enable_thinking": false}})"}}},
    use);

}  // namespace chat_template_target
}  // namespace zero
