#pragma once
// Examples for fine-tuning: lines of a .jsonl file, or the objects of a .json list. An example's keys determine its
// shape. No LibTorch.
//   {"messages": [{"role", "content"}, ...]}                      a conversation; roles system, user, assistant, tool
//   {"conversations": [{"from", "value"}, ...]}                   ShareGPT; human or user, gpt or assistant, system
//   {"instruction", "input"?, "output", "system"?, "history"?}    Alpaca; input follows the instruction on a new line
//   {"prompt", "completion"}                                      no template; the completion and EOS are trained
//   {"text"}                                                      no template; all of it is trained
// "messages" may be accompanied by "tools", "chat_template_kwargs", and other keys that a chat template reads:
// tool_calls, thoughts, parts of text. Conversations and Alpaca examples may have "system". Messages may have "weight",
// "train" or "training" (zero/data/examples/example_keys.h). On a whole example, these keys may only have the value
// that trains it, which is the default.
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/chat_template.h"

namespace zero {

struct Example {
  enum class Kind : std::uint8_t { chat, completion, text };
  Kind kind = Kind::text;
  std::vector<Message> messages;  // chat
  ChatContext context;            // chat
  std::string prompt;             // completion
  std::string text;               // completion: the completion
  std::string place;              // "data/chat.jsonl:17" or "data/alpaca.json: row 17", for messages
  bool operator==(const Example&) const = default;
};

/// Parses one line. Throws InputError that begins with `place` for broken JSON, an unknown shape or role, an empty
/// conversation, or content that is not text. Also throws for an unsupported key, or nesting deeper than 64 levels.
/// Unknown keys are added to `ignored`, those of messages as "messages[].name".
Example parse_example(std::string_view line, const std::string& place, std::set<std::string>* ignored = nullptr);

}  // namespace zero
