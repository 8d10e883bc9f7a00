#include "models/text/jinja/values/characters.h"

#include <unicode/ucasemap.h>
#include <unicode/uchar.h>

#include <memory>

#include "base/utf8.h"
#include "models/text/jinja/error.h"

namespace zero::jinja {
namespace {

using Map = int32_t (*)(const UCaseMap*, char*, int32_t, const char*, int32_t, UErrorCode*);

std::string mapped(std::string_view text, Map map) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<UCaseMap, decltype(&ucasemap_close)> cases(ucasemap_open("", U_FOLD_CASE_DEFAULT, &status),
                                                                   &ucasemap_close);
  std::string result(text.size() + text.size() / 2 + 16, '\0');
  for (int attempt = 0; attempt < 2; ++attempt) {
    status = U_ZERO_ERROR;
    const int32_t length = map(cases.get(), result.data(), static_cast<int32_t>(result.size()), text.data(),
                               static_cast<int32_t>(text.size()), &status);
    if (status != U_BUFFER_OVERFLOW_ERROR && U_FAILURE(status)) fail("a text whose case cannot be changed");
    const bool fits = static_cast<std::size_t>(length) <= result.size();
    result.resize(static_cast<std::size_t>(length));
    if (fits) break;
  }
  return result;
}

template <class Change>
bool for_ascii(std::string_view text, std::string& result, const Change& change) {
  result = text;
  for (char& c : result) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
    c = change(c);
  }
  return true;
}

char up(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char down(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool is_cased(char32_t code) { return is_upper(code) || is_lower(code) || is_title(code); }

/// One character as the first of a word.
std::string title_of(std::string_view character) {
  const char32_t code = code_point(character);
  std::string single;
  append_character(static_cast<char32_t>(u_totitle(static_cast<UChar32>(code))), single);
  if (single != character) return single;
  const std::string upper = upper_case(character);  // "ß" makes "Ss"
  if (upper == character || first_character(upper).size() == upper.size())
    return is_lower(code) && upper.size() == character.size() ? upper : single;
  const std::string_view head = first_character(upper);
  return std::string(head) + lower_case_of(std::string_view(upper).substr(head.size()));
}

}  // namespace

void append_character(char32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr unsigned char heads[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(heads[more] | (code >> (6 * more)));
  for (int shift = 6 * (more - 1); shift >= 0; shift -= 6) text += static_cast<char>(0x80 | ((code >> shift) & 0x3F));
}

bool is_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r') || (code >= 0x1c && code <= 0x1f);
  return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

std::string_view strip_front(std::string_view text) {
  while (!text.empty()) {
    const std::string_view first = first_character(text);
    if (!is_space(code_point(first))) break;
    text.remove_prefix(first.size());
  }
  return text;
}

std::string_view strip_back(std::string_view text) {
  while (!text.empty()) {
    const std::string_view last = last_character(text);
    if (!is_space(code_point(last))) break;
    text.remove_suffix(last.size());
  }
  return text;
}

std::string_view strip_set(std::string_view text, std::string_view set, bool front, bool back) {
  const auto listed = [&](std::string_view character) {
    for (std::string_view rest = set; !rest.empty(); rest.remove_prefix(first_character(rest).size()))
      if (first_character(rest) == character) return true;
    return false;
  };
  while (front && !text.empty() && listed(first_character(text))) text.remove_prefix(first_character(text).size());
  while (back && !text.empty() && listed(last_character(text))) text.remove_suffix(last_character(text).size());
  return text;
}

std::size_t byte_of(std::string_view text, std::size_t character) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (utf8_continues(text[at])) continue;
    if (character-- == 0) return at;
  }
  return at;
}

std::string upper_case(std::string_view text) {
  std::string result;
  return for_ascii(text, result, up) ? result : mapped(text, ucasemap_utf8ToUpper);
}

std::string lower_case_of(std::string_view text) {
  std::string result;
  return for_ascii(text, result, down) ? result : mapped(text, ucasemap_utf8ToLower);
}

std::string fold_case(std::string_view text) {
  std::string result;
  return for_ascii(text, result, down) ? result : mapped(text, ucasemap_utf8FoldCase);
}

std::string title_case(std::string_view text) {
  std::string result, word;  // word: the letters under way but the first
  const auto end_word = [&] {
    result += lower_case_of(word);
    word.clear();
  };
  bool inside = false;
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    const bool cased = is_cased(code_point(character));
    if (cased && inside) {
      word += character;
    } else {
      end_word();
      result += cased ? title_of(character) : std::string(character);
    }
    inside = cased;
    text.remove_prefix(character.size());
  }
  end_word();
  return result;
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return "";
  const std::string_view first = first_character(text);
  return title_of(first) + lower_case_of(text.substr(first.size()));
}

std::string swapped_case(std::string_view text) {
  std::string result;
  for (; !text.empty(); text.remove_prefix(first_character(text).size())) {
    const std::string_view character = first_character(text);
    const char32_t code = code_point(character);
    result += is_upper(code)   ? lower_case_of(character)
              : is_lower(code) ? upper_case(character)
                               : std::string(character);
  }
  return result;
}

bool is_upper(char32_t code) { return u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_UPPERCASE); }
bool is_lower(char32_t code) { return u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_LOWERCASE); }
bool is_title(char32_t code) { return u_charType(static_cast<UChar32>(code)) == U_TITLECASE_LETTER; }
bool is_alphabetic(char32_t code) { return (U_GET_GC_MASK(static_cast<UChar32>(code)) & U_GC_L_MASK) != 0; }
bool is_decimal(char32_t code) { return u_charType(static_cast<UChar32>(code)) == U_DECIMAL_DIGIT_NUMBER; }

bool is_digit_character(char32_t code) {
  const auto type = u_getIntPropertyValue(static_cast<UChar32>(code), UCHAR_NUMERIC_TYPE);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}

bool is_numeric_character(char32_t code) {
  return u_getIntPropertyValue(static_cast<UChar32>(code), UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool is_printable(char32_t code) {
  if (code == ' ') return true;
  return (U_GET_GC_MASK(static_cast<UChar32>(code)) & (U_GC_C_MASK | U_GC_Z_MASK)) == 0;
}

}  // namespace zero::jinja
