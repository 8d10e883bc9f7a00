#include "models/text/word_character.h"

#include <algorithm>
#include <iterator>

#include "models/text/pipeline/unicode/general_category.h"

namespace zero {
namespace {

struct Range {
  char32_t first, last;
};

// Letters in circles and squares, which are alphabetic symbols.
constexpr Range letter_symbols[] = {{0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};

constexpr Range spaces[] = {{0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
                            {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

template <std::size_t N>
bool holds(const Range (&ranges)[N], char32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [code](const Range& range) { return range.first <= code && code <= range.last; });
}

bool is_joiner(char32_t code) { return code == 0x200c || code == 0x200d; }

}  // namespace

bool is_word_character(char32_t code) {
  const std::string_view category = general_category(code);
  return category.front() == 'L' || category.front() == 'M' || category == "Nd" || category == "Nl" ||
         category == "Pc" || is_joiner(code) || holds(letter_symbols, code);
}

bool is_white_space(char32_t code) { return holds(spaces, code); }

}  // namespace zero
