#pragma once
// The known name that a misspelt one most likely meant.
#include <string>
#include <vector>

namespace zero {

/// Fewest insertions, deletions, substitutions and swaps of neighbours that turn one word into the other
/// (optimal string alignment distance).
int edit_distance(const std::string& a, const std::string& b);

/// The nearest of `known`, the first of equally near ones; empty when even that one differs in more than half of its
/// letters.
std::string nearest_key(const std::string& word, const std::vector<std::string>& known);

/// "; the nearest is NAME; known are A, B": the end of a message about an unknown word. Without the first half where
/// none is near.
std::string choice_among(const std::string& word, const std::vector<std::string>& known);

}  // namespace zero
