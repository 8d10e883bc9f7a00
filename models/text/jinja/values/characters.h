#pragma once
// Characters as in Python's str: white space, categories and cases. Strings are UTF-8. Does not include LibTorch.
#include <cstddef>
#include <string>
#include <string_view>

namespace zero::jinja {

void append_character(char32_t code, std::string& text);

bool is_space(char32_t code);  // str.isspace
std::string_view strip_front(std::string_view text);
std::string_view strip_back(std::string_view text);

/// Strips the characters of `set` from the front, the back or both.
std::string_view strip_set(std::string_view text, std::string_view set, bool front, bool back);

/// The byte offset of the character with this index, or the text's size if it has fewer characters.
std::size_t byte_of(std::string_view text, std::size_t character);

std::string upper_case(std::string_view text);
std::string lower_case_of(std::string_view text);  // handles Greek's final sigma
std::string fold_case(std::string_view text);
std::string title_case(std::string_view text);  // str.title: each run of letters begins with a capital
std::string capitalized(std::string_view text);
std::string swapped_case(std::string_view text);

bool is_upper(char32_t code);  // Uppercase
bool is_lower(char32_t code);  // Lowercase
bool is_title(char32_t code);  // Lt
bool is_alphabetic(char32_t code);
bool is_decimal(char32_t code);
bool is_digit_character(char32_t code);
bool is_numeric_character(char32_t code);
bool is_printable(char32_t code);

}  // namespace zero::jinja
