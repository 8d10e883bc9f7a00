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
  PostProcessor() = default;  // puts nothing
  /// InputError for a type, a field or a value that is not known.
  explicit PostProcessor(Component component);

  /// Of one text. Without `special` only what a template says of the text itself is done.
  std::vector<std::int32_t> apply(std::vector<std::int32_t> ids, bool special) const;

  /// Takes white space at the ends of tokens out of their spans, which count code points, where the file asks for that
  /// (pre_tokenizers/byte_level.rs). `written` are the tokens' texts.
  void trim(const std::vector<std::string_view>& written, std::vector<TextSpan>& spans) const;

 private:
  struct Step {
    bool text = false;              // the ids of the text stand here, else
    std::vector<std::int32_t> ids;  // these
  };
  void add(Component component);
  void add_template(Component& component);
  void add_pair(Component& component);

  std::optional<std::vector<Step>> steps_;  // nothing: the ids as they are
  std::vector<bool> trims_;                 // of spans, each with its add_prefix_space
};

}  // namespace zero
