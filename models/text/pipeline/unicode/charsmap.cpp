#include "models/text/pipeline/unicode/charsmap.h"

#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "models/text/character_map.h"
#include "models/text/pipeline/unicode/unicode_text.h"

namespace zero {
namespace {

std::optional<std::string> from_base64(std::string_view encoded) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (encoded.ends_with('=')) encoded.remove_suffix(1);
  std::string bytes;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char digit : encoded) {
    const std::size_t value = digits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    held = (held << 6 | static_cast<std::uint32_t>(value)) & 0xFFFF;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits);
  }
  return bytes;
}

constexpr std::uint32_t label_of(std::uint32_t unit) { return unit & (0x80000000u | 0xFF); }
constexpr std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }
/// Each new character gets the origin of one old character. Any more get the origin of the last one.
void put(std::string_view rule, std::string_view old, std::size_t begin, TextRewriter& out) {
  std::size_t place = 0;
  for_each_character(rule, [&](std::string_view character, char32_t) {
    out.put(character, begin + place);
    const std::size_t next = place + first_character(old.substr(place)).size();
    if (next < old.size()) place = next;
  });
}

constexpr bool has_rule(std::uint32_t unit) { return unit >> 8 & 1; }

}  // namespace

Charsmap::Charsmap(const std::string& encoded, const std::string& place) {
  const auto map = from_base64(encoded);
  const char* fault = !map || map->empty() ? "is empty, or no base64" : fault_of_character_map(*map);
  if (fault) throw InputError(text(place, ": precompiled_charsmap ", fault, "; is the file damaged?"));
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, map->data(), sizeof bytes);
  units_.resize(bytes / sizeof(std::uint32_t));
  std::memcpy(units_.data(), map->data() + sizeof bytes, bytes);
  texts_ = map->substr(sizeof bytes + bytes);
}

std::optional<std::string_view> Charsmap::find(std::string_view chunk) const {
  std::uint32_t place = offset_of(units_[0]);
  for (const char character : chunk) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte == 0) return std::nullopt;
    place ^= byte;
    const std::uint32_t unit = units_[place];
    if (label_of(unit) != byte) return std::nullopt;
    place ^= offset_of(unit);
    if (has_rule(unit)) return std::string_view(texts_.c_str() + (units_[place] & 0x7FFFFFFF));
  }
  return std::nullopt;
}

void Charsmap::apply(AlignedText& text) const {
  constexpr std::size_t longest = 6;
  TextRewriter result(text, text.text.size());
  for (const TextSpan& span : graphemes(text.text)) {
    const std::string_view grapheme = std::string_view(text.text).substr(span.begin, span.end - span.begin);
    if (grapheme.size() < longest) {
      if (const auto rule = find(grapheme)) {
        put(*rule, grapheme, span.begin, result);
        continue;
      }
    }
    std::size_t at = span.begin;
    for_each_character(grapheme, [&](std::string_view character, char32_t) {
      result.put(find(character).value_or(character), at);
      at += character.size();
    });
  }
  result.finish();
}

}  // namespace zero
