#pragma once
// PostProcessor: adds a tokenizer.json's special tokens around the ids of a text. Does not include LibTorch.
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

  /// Processes the ids of one text. If `special` is false, applies only the template's steps for the text.
  std::vector<std::int32_t> apply(std::vector<std::int32_t> ids, bool special) const;

  /// If the file sets trim_offsets, removes white space at both ends of tokens from their spans, which are in code
  /// points (pre_tokenizers/byte_level.rs). `written` holds the tokens' texts.
  void trim(const std::vector<std::string_view>& written, std::vector<TextSpan>& spans) const;

 private:
  struct Step {
    bool text = false;              // true: the ids of the text; false: `ids`
    std::vector<std::int32_t> ids;  // used if `text` is false
  };
  void add(Component component);
  void add_template(Component& component);
  void add_pair(Component& component);

  std::optional<std::vector<Step>> steps_;  // not set: ids do not change
  std::vector<bool> trims_;                 // the add_prefix_space of each trim, in order
};

}  // namespace zero
