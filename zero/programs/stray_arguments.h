#pragma once
// StrayArguments: words of a command line that no option took.
#include <string>
#include <vector>

namespace zero {

/// "--lr 1e-3: are no arguments; keys of the configuration are given as --set optimizer.lr=1e-3". The words in their
/// order, with what the first most likely means: one of the program's `options`; where --set is among them a key, by
/// its name here or in another tool; or the nearest option. Without the second half where nothing is near. Not for an
/// empty list.
std::string stray_arguments_message(const std::vector<std::string>& words, const std::vector<std::string>& options);

}  // namespace zero
