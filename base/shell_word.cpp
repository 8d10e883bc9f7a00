#include "base/shell_word.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace zero {

std::string shell_word(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) || c >= 0x80 || std::string_view("/._-+,:@%=").find(char(c)) != std::string_view::npos;
  };
  if (!word.empty() && word.front() != '-' && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace zero
