#pragma once
// Unicode properties of texts for normalizers and pre-tokenizers: normal forms, lower case, classes of characters.
// Versions of Unicode are those of Hugging Face's tokenizers 0.23, which differ from table to table. No LibTorch.
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "models/text/chat_template.h"

namespace zero {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Uses ICU, restricted to Unicode 9, where their table ends (the crate unicode-normalization-alignments). Later
/// characters stay unchanged, and no mark moves across them.
std::string normalize(NormalForm form, std::string_view text);

/// The spans that normalise independently: the result of each alone is its result in the text.
std::vector<TextSpan> normal_segments(NormalForm form, std::string_view text);

/// Character by character, independent of the context.
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

/// Grapheme clusters, extended ones.
std::vector<TextSpan> graphemes(std::string_view text);

int combining_class(char32_t code);        // canonical, of Unicode 9
bool is_combining_mark(char32_t code);     // M of Unicode 9
bool is_nonspacing_mark(char32_t code);    // Mn of Unicode 8
bool is_control(char32_t code);            // Cc, Cf, Co of Unicode 8
bool is_punctuation(char32_t code);        // P of Unicode 8, and the punctuation and symbols of ASCII
bool is_numeric(char32_t code);            // N
bool is_chinese_character(char32_t code);  // ideographs, as BERT has them

}  // namespace zero
