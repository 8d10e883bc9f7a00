#include "models/text/pipeline/unicode/unicode_text.h"

#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/utext.h>

#include <array>
#include <cctype>
#include <climits>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "models/text/pipeline/unicode/general_category.h"

namespace zero {
namespace {

void require(UErrorCode code) { ZERO_CHECK(U_SUCCESS(code), std::string("ICU: ") + u_errorName(code)); }

const icu::Normalizer2* whole_form(NormalForm form, UErrorCode& code) {
  switch (form) {
    case NormalForm::nfc:
      return icu::Normalizer2::getNFCInstance(code);
    case NormalForm::nfd:
      return icu::Normalizer2::getNFDInstance(code);
    case NormalForm::nfkc:
      return icu::Normalizer2::getNFKCInstance(code);
    case NormalForm::nfkd:
      break;
  }
  return icu::Normalizer2::getNFKDInstance(code);
}

const icu::Normalizer2* make_form(NormalForm form) {
  UErrorCode code = U_ZERO_ERROR;
  static const icu::UnicodeSet& known = *[&code] {
    auto* set = new icu::UnicodeSet(UNICODE_STRING_SIMPLE("[:age=9.0:]"), code);  // for as long as the process lasts
    set->freeze();
    return set;
  }();
  const icu::Normalizer2* whole = whole_form(form, code);
  require(code);
  return new icu::FilteredNormalizer2(*whole, known);
}

const icu::Normalizer2& normalizer_of(NormalForm form) {
  static const std::array<const icu::Normalizer2*, 4> forms{make_form(NormalForm::nfc), make_form(NormalForm::nfd),
                                                            make_form(NormalForm::nfkc), make_form(NormalForm::nfkd)};
  return *forms[static_cast<std::size_t>(form)];
}

bool is_ascii(std::string_view text) {
  std::size_t at = 0;
  std::uint64_t word = 0;
  for (; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if (word & 0x8080808080808080u) return false;
  }
  for (; at < text.size(); ++at)
    if (text[at] & 0x80) return false;
  return true;
}

/// True if a character is assigned in a version of Unicode.
bool is_of_version(char32_t code, int version) {
  UVersionInfo age{};
  u_charAge(static_cast<UChar32>(code), age);
  return age[0] > 0 && age[0] <= version;
}

}  // namespace

std::string normalize(NormalForm form, std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  ZERO_CHECK(text.size() <= INT_MAX, "a text of 2 GiB or more cannot be normalised at once");
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  icu::StringByteSink<std::string> sink(&result);
  UErrorCode code = U_ZERO_ERROR;
  normalizer_of(form).normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())), sink,
                                    nullptr, code);
  require(code);
  return result;
}

std::vector<TextSpan> normal_segments(NormalForm form, std::string_view text) {
  const icu::Normalizer2& normalizer = normalizer_of(form);
  std::vector<TextSpan> spans;
  std::size_t at = 0;
  for_each_character(text, [&](std::string_view character, char32_t code) {
    if (at == 0 || normalizer.hasBoundaryBefore(static_cast<UChar32>(code))) spans.push_back({at, at});
    spans.back().end = at += character.size();
  });
  return spans;
}

std::string lower_case(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for_each_character(text, [&](std::string_view, char32_t code) {
    append_character(static_cast<char32_t>(u_tolower(static_cast<UChar32>(code))), result);
    if (code == 0x130) append_character(0x307, result);  // the only one that becomes two
  });
  return result;
}

void append_character(char32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  text += static_cast<char>((0xFF00 >> (more + 1)) | (code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
}

std::vector<TextSpan> graphemes(std::string_view text) {
  UErrorCode code = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), code));
  const std::unique_ptr<UText, UText* (*)(UText*)> view(
      utext_openUTF8(nullptr, text.data(), static_cast<std::int64_t>(text.size()), &code), utext_close);
  require(code);
  breaks->setText(view.get(), code);
  require(code);
  std::vector<TextSpan> spans;
  std::size_t begin = 0;
  for (std::int32_t end = breaks->next(); end != icu::BreakIterator::DONE; end = breaks->next()) {
    spans.push_back({begin, static_cast<std::size_t>(end)});
    begin = static_cast<std::size_t>(end);
  }
  return spans;
}

int combining_class(char32_t code) {
  return is_of_version(code, 9) ? u_getCombiningClass(static_cast<UChar32>(code)) : 0;
}

bool is_combining_mark(char32_t code) {
  const bool then = code == 0x1CF2 || code == 0x1CF3;  // became letters in Unicode 12
  return then || (has_category(code, 'M') && is_of_version(code, 9));
}

bool is_nonspacing_mark(char32_t code) {
  if (code == 0x1734) return true;                                       // became a spacing mark since
  if (code == 0x1885 || code == 0x1886 || code == 0xA9BD) return false;  // and these became marks without space
  return general_category(code) == "Mn" && is_of_version(code, 8);
}

bool is_control(char32_t code) {
  const std::string_view category = general_category(code);
  return category == "Co" || ((category == "Cc" || category == "Cf") && is_of_version(code, 8));
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) return std::ispunct(static_cast<int>(code)) != 0;
  const bool then = code == 0x166D || code == 0x111C9;  // became a symbol and a mark since
  return then || (has_category(code, 'P') && is_of_version(code, 8));
}

bool is_numeric(char32_t code) { return code < 0x80 ? code >= '0' && code <= '9' : has_category(code, 'N'); }

bool is_chinese_character(char32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
         (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

}  // namespace zero
