#pragma once
// KeyHint: how a word of a command line is said as a key of the configuration.
#include <string>

namespace zero {

/// For "lr" and "1e-3": "; keys of the configuration are given as --set optimizer.lr=1e-3". Knows names of other tools.
/// Empty for an unknown word.
std::string key_hint(const std::string& name, const std::string& value);

}  // namespace zero
