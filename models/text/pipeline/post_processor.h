#pragma once
// PostProcessor: the special tokens that a tokenizer.json puts around the ids of a text. No LibTorch.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/text/chat_template.h"

namespace zero {

class Component;

class PostProcessor {
 public:
  PostProcessor() = default;  // adds nothing
  /// Throws InputError for an unknown type, field or value.
  explicit PostProcessor(Component component);

  /// Processes the ids of one text. Without `special` it applies only a template's rules for the text itself.
  std::vector<std::int32_t> apply(std::vector<std::int32_t> ids, bool special) const;

  /// Removes white space at the ends of tokens from their spans, which count code points, if the file asks for that
  /// (pre_tokenizers/byte_level.rs). `written` are the tokens' texts.
  void trim(const std::vector<std::string_view>& written, std::vector<TextSpan>& spans) const;

 private:
  struct Step {
    bool text = false;              // true: the ids of the text; false: `ids`
    std::vector<std::int32_t> ids;  // these
  };
  void add(Component component);
  void add_template(Component& component);
  void add_pair(Component& component);

  std::optional<std::vector<Step>> steps_;  // nothing: the ids unchanged
  std::vector<bool> trims_;                 // of spans, each with its add_prefix_space
};

}  // namespace zero
