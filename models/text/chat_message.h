#pragma once
// Messages of a conversation, the template's further inputs, and the rendered text. No LibTorch.
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/text/text_span.h"

namespace zero {

/// Shared by copies, and compared by identity.
using ChatJson = std::shared_ptr<const nlohmann::ordered_json>;

struct Message {
  std::string role;                            // "system", "user", "assistant" or "tool"
  std::string content;                         // UTF-8; of several parts all texts, concatenated
  std::optional<bool> trained = std::nullopt;  // true or false if the data say so
  ChatJson whole = nullptr;  // the object for templates if it has other keys than role and content; else nullptr
  bool operator==(const Message&) const = default;
};

/// The parts of a conversation other than its messages.
struct ChatContext {
  ChatJson tools;      // a list of objects; nullptr: none
  ChatJson variables;  // an object: further names for the template; nullptr: none
  bool operator==(const ChatContext&) const = default;
};

struct RenderedChat {
  std::string text;
  std::vector<TextSpan> trained;  // each trained answer of the assistant with the mark that ends it
};

}  // namespace zero
