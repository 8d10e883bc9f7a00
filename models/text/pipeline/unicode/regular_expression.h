#pragma once
// RegularExpression: a pattern as in Hugging Face's tokenizers, matched by the library that they use (Oniguruma, with
// its own syntax). Their build has Unicode 16, Debian's 6.9.8 has Unicode 14. General categories such as \p{L}
// therefore come from models/text/pipeline/unicode/general_category.h. \w, \d, case folding and scripts are Debian's,
// so they differ for characters added after 2021. Does not include LibTorch.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/chat_template.h"

namespace zero {

class RegularExpression {
 public:
  /// Throws InputError, whose message begins with `place`, for an invalid pattern.
  RegularExpression(const std::string& pattern, const std::string& place);
  RegularExpression(RegularExpression&&) noexcept;
  ~RegularExpression();

  /// Appends all matches from left to right. An empty match at the end of the previous match is skipped. The text must
  /// be valid UTF-8. Throws InputError if the pattern needs more steps than the library allows. Thread-safe.
  void find_all(std::string_view text, std::vector<TextSpan>& matches) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zero
