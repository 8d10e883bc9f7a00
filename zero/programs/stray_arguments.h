#pragma once
// StrayArguments: words on a command line that do not belong to an option.
#include <string>
#include <vector>

namespace zero {

/// The error message: "--lr 1e-3: are no arguments; keys of the configuration are given as --set optimizer.lr=1e-3".
/// Lists the words in order, then the likely meaning of the first word. That is one of the program's `options` or the
/// nearest one. If the program has --set, it may be a key, by its name here or in another tool. Omits this part if
/// nothing is near. `words` must not be empty.
std::string stray_arguments_message(const std::vector<std::string>& words, const std::vector<std::string>& options);

}  // namespace zero
