#pragma once
// The normaliser's rules in a tokenizer.model: a double array (Darts) that maps characters to replacements.
// SentencePiece walks the array without bounds checks, so this project checks the array first. Does not include
// LibTorch.
#include <string_view>

namespace zero {

/// Returns why a precompiled_charsmap is unsafe to walk, or nullptr if it is safe or empty. The check covers every
/// entry that some text can reach, and the replacement texts. It also checks that no text can match more rules at one
/// position than SentencePiece has room for.
const char* fault_of_character_map(std::string_view map);

}  // namespace zero
