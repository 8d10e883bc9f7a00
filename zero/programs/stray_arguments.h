#pragma once
// StrayArguments: words of a command line that belong to no option.
#include <functional>
#include <string>
#include <vector>

namespace zero {

/// Returns a hint about an unknown option, from its name and value, for a program that accepts configuration keys;
/// empty: no hint.
using KeyHint = std::function<std::string(const std::string& name, const std::string& value)>;

/// The keys of a program with --set.
struct SettableKeys {
  KeyHint hint;
  std::vector<std::string> names;  // "zero.stage", for completion
};

/// The error message: "--lr 1e-3: are no arguments; keys of the configuration are given as --set optimizer.lr=1e-3".
/// Lists the words in order, then the likely meaning of the first word. The meaning is the same option in another
/// spelling; otherwise the hint of `key_hint`, if the program's `options` include --set; otherwise the nearest option.
/// Omits the meaning if no option is near. Requires at least one word.
std::string stray_arguments_message(const std::vector<std::string>& words, const std::vector<std::string>& options,
                                    const KeyHint& key_hint = {});

}  // namespace zero
