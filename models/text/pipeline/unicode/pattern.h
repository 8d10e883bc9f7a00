#pragma once
// Pattern: what a text is divided by: a string, a regular expression or a class of characters. No LibTorch.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/chat_template.h"

namespace zero {

class Pattern {
 public:
  virtual ~Pattern() = default;

  /// Appends where the pattern stands in a text of valid UTF-8, from left to right. Thread-safe.
  virtual void find_all(std::string_view text, std::vector<TextSpan>& matches) const = 0;
};

/// A string as it is written; an empty one stands between all characters, and at both ends.
std::unique_ptr<const Pattern> string_pattern(std::string text, const std::string& place);
/// InputError, which begins with `place`, for a pattern that is no regular expression.
std::unique_ptr<const Pattern> regex_pattern(const std::string& pattern, const std::string& place);
/// Every single character of a class.
std::unique_ptr<const Pattern> class_pattern(bool (*holds)(char32_t));

}  // namespace zero
