#pragma once
// StrayArguments: words of a command line that belong to no option.
#include <functional>
#include <string>
#include <vector>

namespace zero {

/// The words about an unknown option, from its name and value, of a program that takes keys; empty: nothing.
using KeyHint = std::function<std::string(const std::string& name, const std::string& value)>;

/// The error message: "--lr 1e-3: are no arguments; keys of the configuration are given as --set optimizer.lr=1e-3".
/// Lists the words in order, then the likely meaning of the first. That is one of the program's `options`; if --set is
/// among them, the words of `key_hint`; or the nearest option. Omits this part if nothing is near. Requires a word.
std::string stray_arguments_message(const std::vector<std::string>& words, const std::vector<std::string>& options,
                                    const KeyHint& key_hint = {});

}  // namespace zero
