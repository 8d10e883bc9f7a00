#pragma once
// The normaliser's rules in a tokenizer.model: a double array (Darts) of characters and the texts that take their
// place. SentencePiece walks it without looking where it goes, so it is looked at before. No LibTorch.
#include <string_view>

namespace zero {

/// Why a precompiled_charsmap cannot be walked safely, whatever the text; nullptr when it can, or is empty. Checked are
/// every place that some text leads to, the texts that take characters' place, and that no text meets more rules at one
/// place than SentencePiece has room for.
const char* fault_of_character_map(std::string_view map);

}  // namespace zero
