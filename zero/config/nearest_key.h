#pragma once
// Finds the known name that a misspelt one probably means.
#include <string>
#include <vector>

namespace zero {

/// Returns the smallest number of insertions, deletions, substitutions and swaps of adjacent letters that turn one word
/// into the other (optimal string alignment distance).
int edit_distance(const std::string& a, const std::string& b);

/// Returns the nearest of `known`, or the first if several are equally near. Empty if more than half of the letters
/// differ.
std::string nearest_key(const std::string& word, const std::vector<std::string>& known);

/// Ends a message about an unknown word: "; the nearest is NAME; known are A, B". Omits the first half if no name is
/// near.
std::string choice_among(const std::string& word, const std::vector<std::string>& known);

}  // namespace zero
