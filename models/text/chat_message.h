#pragma once
// The messages of a conversation, the template's other inputs, and the rendered text. Does not include LibTorch.
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/text/text_span.h"

namespace zero {

/// Copies share the value, and comparison is by identity.
using ChatJson = std::shared_ptr<const nlohmann::ordered_json>;

struct Message {
  std::string role;                            // "system", "user", "assistant" or "tool"
  std::string content;                         // UTF-8; if there are several parts, all their texts, concatenated
  std::optional<bool> trained = std::nullopt;  // set only if the data say so
  ChatJson whole = nullptr;  // the message as templates see it, if it has other keys than role and content
  bool operator==(const Message&) const = default;
};

/// The parts of a conversation other than its messages.
struct ChatContext {
  ChatJson tools;      // a list of objects; nullptr: none
  ChatJson variables;  // an object with more names for the template; nullptr: none
  bool operator==(const ChatContext&) const = default;
};

struct RenderedChat {
  std::string text;
  std::vector<TextSpan> trained;  // each trained answer of the assistant, including the text that ends it
};

}  // namespace zero
