#pragma once
// Pattern: a string, a regular expression or a class of characters that divides a text. Does not include LibTorch.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/chat_template.h"

namespace zero {

class Pattern {
 public:
  virtual ~Pattern() = default;

  /// Appends the matches in a text of valid UTF-8, from left to right. Thread-safe.
  virtual void find_all(std::string_view text, std::vector<TextSpan>& matches) const = 0;
};

/// A literal string. The empty string matches between all characters and at both ends.
std::unique_ptr<const Pattern> string_pattern(std::string text, const std::string& place);
/// Throws InputError, whose message begins with `place`, for an invalid regular expression.
std::unique_ptr<const Pattern> regex_pattern(const std::string& pattern, const std::string& place);
/// Matches every single character of a class.
std::unique_ptr<const Pattern> class_pattern(bool (*holds)(char32_t));

}  // namespace zero
