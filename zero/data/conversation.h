#pragma once
// Examples for fine-tuning: one line of a .jsonl file each, its shape told by its keys. No LibTorch.
//   {"messages": [{"role", "content"}, ...]}                      a conversation; roles system, user, assistant
//   {"conversations": [{"from", "value"}, ...]}                   ShareGPT; human or user, gpt or assistant, system
//   {"instruction", "input"?, "output", "system"?, "history"?}    Alpaca; input follows the instruction on a new line
//   {"prompt", "completion"}                                      no template; the completion and EOS are trained
//   {"text"}                                                      no template; all of it is trained
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/chat_template.h"

namespace zero {

struct Example {
  enum class Kind : std::uint8_t { chat, completion, text };
  Kind kind = Kind::text;
  std::vector<Message> messages;   // chat
  std::string prompt;              // completion
  std::string text;                // completion: what follows the prompt
  std::string place;               // "data/chat.jsonl:17", for messages
  bool operator==(const Example&) const = default;
};

/// One line. InputError that begins with `place`: broken JSON, no known shape, an unknown role, an empty conversation,
/// content that is no text, deeper than 32 levels.
Example parse_example(std::string_view line, const std::string& place);

/// Calls `take` with the examples of a file in order until it says false; blank lines are passed over. InputError when the file cannot be read,
/// holds none, or has a line longer than max_line_bytes.
void read_examples(const std::string& path, const std::function<bool(const Example&)>& take, std::int64_t max_line_bytes = 16 << 20);

}  // namespace zero
