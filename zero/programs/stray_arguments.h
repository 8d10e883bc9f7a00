#pragma once
// StrayArguments: words of a command line that belong to no option.
#include <string>
#include <vector>

namespace zero {

/// Returns, as the end of a message, the key of the configuration that the words --NAME VALUE mean (key_hint.h). Empty
/// for other words.
using KeyHint = std::string (*)(const std::string& name, const std::string& value);

/// The error message: "--lr 1e-3: are no arguments; keys of the configuration are given as --set optimizer.lr=1e-3".
/// Lists the words in order, then the likely meaning of the first. That is one of the program's `options`; if --set is
/// among them, a key by the hint; or the nearest option. Omits this part if nothing is near. Requires a word.
std::string stray_arguments_message(const std::vector<std::string>& words, const std::vector<std::string>& options,
                                    KeyHint hint = nullptr);

}  // namespace zero
