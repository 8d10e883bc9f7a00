#pragma once
// Examples for fine-tuning: lines of a .jsonl file, or the objects of a .json list. Keys determine an example's shape.
// No LibTorch.
//   {"messages": [{"role", "content"}, ...]}                      a conversation; roles system, user, assistant, tool
//   {"conversations": [{"from", "value"}, ...]}                   ShareGPT; human or user, gpt or assistant, system
//   {"instruction", "input"?, "output", "system"?, "history"?}    Alpaca; input follows the instruction on a new line
//   {"prompt", "completion"}                                      no template; the completion and EOS are trained
//   {"text"}                                                      no template; all of it is trained
// "messages" may come with "tools", with "chat_template_kwargs", and with other keys that a chat template reads:
// tool_calls, thoughts, parts of text. Conversations and Alpaca may have "system". Messages may have "weight", "train"
// or "training" (zero/data/examples/example_keys.h). An example may set only the default: that it is trained.
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

/// Parses one line. Throws InputError that begins with `place`, for broken JSON, an unknown shape or role, an empty
/// conversation, or content that is no text. Also for an unsupported key, or nesting deeper than 64 levels. Unknown
/// keys go into `ignored`, those of messages as "messages[].name".
Example parse_example(std::string_view line, const std::string& place, std::set<std::string>* ignored = nullptr);

}  // namespace zero
