#pragma once
// Messages of a conversation, and the text that a template makes of them. No LibTorch.
#include <optional>
#include <string>
#include <vector>

#include "models/text/text_span.h"

namespace zero {

struct Message {
  std::string role;                            // "system", "user" or "assistant"
  std::string content;                         // UTF-8
  std::optional<bool> trained = std::nullopt;  // whether data said that it is, or is not
  bool operator==(const Message&) const = default;
};

struct RenderedChat {
  std::string text;
  std::vector<TextSpan> trained;  // each answer of the assistant with the mark that ends it, but those said to be not
};

}  // namespace zero
