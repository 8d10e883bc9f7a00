#include "base/utf8.h"

#include <gmock/gmock.h>

#include <random>

#include "base/error.h"

namespace zero {
namespace {

using ::testing::HasSubstr;

std::string refusal(std::string_view text, std::size_t part = 1 << 20, std::int64_t offset = 0) {
  Utf8Check check("t.txt", offset);
  try {
    for (std::size_t at = 0; at < text.size(); at += part) check.add(text.substr(at, part));
    check.finish();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Utf8, TakesEveryCharacterHoweverItIsCut) {
  std::string all;
  for (char32_t code = 1; code < 0x110000; code += code < 0x3000 ? 1 : 97) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const auto byte = [&](char32_t bits) { all += static_cast<char>(bits); };
    if (code < 0x80)
      byte(code);
    else if (code < 0x800) {
      byte(0xC0 | code >> 6);
      byte(0x80 | (code & 63));
    } else if (code < 0x10000) {
      byte(0xE0 | code >> 12);
      byte(0x80 | (code >> 6 & 63));
      byte(0x80 | (code & 63));
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 63));
      byte(0x80 | (code >> 6 & 63));
      byte(0x80 | (code & 63));
    }
    EXPECT_EQ(code_point(last_character(all)), code);
  }
  for (const std::size_t part : {1, 2, 3, 5, 8, 13, 1 << 20}) EXPECT_EQ(refusal(all, part), "") << part;
}

TEST(Utf8, NamesTheFirstByteThatDoesNotBelong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"f\xfcr Gr\xf6\xdf"
       "e",
       "t.txt: byte 1 (0xFC) is not UTF-8"},
      {"\xff\xfeh\0", "t.txt: byte 0 (0xFF) is not UTF-8: convert the text to UTF-8 (iconv -f UTF-16"},
      {std::string("abcdefghijkl\0xyz", 16), "t.txt: byte 12 is zero"},
      {"0123456789\xc0\xaf", "byte 10 (0xC0)"},  // a longer form than needed
      {"a\xe0\x80\xaf", "byte 1 (0xE0)"},
      {"a\xed\xa0\x80", "byte 1 (0xED)"},      // a surrogate
      {"a\xf4\x90\x80\x80", "byte 1 (0xF4)"},  // beyond U+10FFFF
      {"caf\xe9 latin", "byte 3 (0xE9)"},
      {"aa\x80", "byte 2 (0x80)"},
      {"ok \xe4\xb8", "ends at byte 5 inside a character"},
  };
  for (const auto& [text, message] : cases)
    for (const std::size_t part : {1, 2, 3, 7, 100}) EXPECT_THAT(refusal(text, part), HasSubstr(message)) << part;
  EXPECT_THAT(refusal("a\xff", 1, 3), HasSubstr("byte 4 "));
}

/// Loops step on by the first character, so a broken text may not stop them.
TEST(Utf8, AByteThatBeginsNoCharacterIsOneByItself) {
  const std::string broken = "a\xff\x80\u00e9\xe4";
  std::vector<std::size_t> sizes;
  for (std::string_view rest = broken; !rest.empty() && sizes.size() < 10; rest.remove_prefix(sizes.back()))
    sizes.push_back(first_character(rest).size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 1, 1, 2, 1}));
}

// Every cut of every broken text: the answer of the whole.
TEST(Utf8, CutsChangeNoAnswer) {
  std::mt19937 random(2);
  const std::vector<std::string> bits{"a",    "plain words ", "\u00e9",   "\u4e2d", "\U0001F680",
                                      "\xff", "\xe4\xb8",     "\xf0\x9f", "\x80",   std::string(1, '\0')};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += bits[random() % (round % 3 == 0 ? bits.size() : 5)];
    const std::string whole = refusal(text);
    for (const std::size_t part : {1, 3, 9}) EXPECT_EQ(refusal(text, part), whole);
  }
}

}  // namespace
}  // namespace zero
