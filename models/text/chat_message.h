#pragma once
// Messages of a conversation, what a template is shown beside them, and the text that it makes of both. No LibTorch.
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/text/text_span.h"

namespace zero {

/// Shared by copies, and compared as the one object that it is.
using ChatJson = std::shared_ptr<const nlohmann::ordered_json>;

struct Message {
  std::string role;                            // "system", "user", "assistant" or "tool"
  std::string content;                         // UTF-8; of several parts all texts, one behind the other
  std::optional<bool> trained = std::nullopt;  // whether data said that it is, or is not
  ChatJson whole = nullptr;  // the object that templates are shown, where it says more than role and content
  bool operator==(const Message&) const = default;
};

/// What a conversation holds beside its messages.
struct ChatContext {
  ChatJson tools;      // a list of objects; nullptr: none
  ChatJson variables;  // an object: further names for the template; nullptr: none
  bool operator==(const ChatContext&) const = default;
};

struct RenderedChat {
  std::string text;
  std::vector<TextSpan> trained;  // each answer of the assistant with the mark that ends it, but those said to be not
};

}  // namespace zero
