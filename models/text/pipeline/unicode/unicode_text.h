#pragma once
// Unicode properties of texts for normalizers and pre-tokenizers: normal forms, lower case, classes of characters. Each
// function uses the Unicode version that Hugging Face's tokenizers 0.23 use for it. Does not include LibTorch.
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "models/text/chat_template.h"

namespace zero {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Uses ICU, restricted to Unicode 9, like Hugging Face's table (the crate unicode-normalization-alignments). Later
/// characters do not change, and no combining mark moves across them.
std::string normalize(NormalForm form, std::string_view text);

/// Spans that can be normalised independently, with the same result as in the whole text.
std::vector<TextSpan> normal_segments(NormalForm form, std::string_view text);

/// Converts each character to lower case, regardless of context.
std::string lower_case(std::string_view text);

void append_character(char32_t code, std::string& text);

/// Calls `use` with every character of valid UTF-8 and its code point.
template <class Use>
void for_each_character(std::string_view text, const Use& use) {
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = first_character(text.substr(at));
    use(character, code_point(character));
    at += character.size();
  }
}

/// Extended grapheme clusters.
std::vector<TextSpan> graphemes(std::string_view text);

int combining_class(char32_t code);        // canonical, of Unicode 9
bool is_combining_mark(char32_t code);     // M of Unicode 9
bool is_nonspacing_mark(char32_t code);    // Mn of Unicode 8
bool is_control(char32_t code);            // Cc, Cf, Co of Unicode 8
bool is_punctuation(char32_t code);        // P of Unicode 8, and the punctuation and symbols of ASCII
bool is_numeric(char32_t code);            // N
bool is_chinese_character(char32_t code);  // ideographs, as BERT defines them

}  // namespace zero
