#pragma once
// The normaliser's rules in a tokenizer.model: a double array (Darts) of characters and their replacements.
// SentencePiece walks it without bounds checks, so it is checked before. No LibTorch.
#include <string_view>

namespace zero {

/// Returns the fault that makes a precompiled_charsmap unsafe to walk; nullptr if it is safe or empty. The check covers
/// every place that some text leads to, and the replacement texts. No text may meet more rules at one place than
/// SentencePiece has room for.
const char* fault_of_character_map(std::string_view map);

}  // namespace zero
