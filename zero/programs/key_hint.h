#pragma once
// A hint for options that are keys of the configuration.
#include <string>

namespace zero {

/// The KeyHint of programs with --set: a key by its name here or in another tool, and how to set it. Empty for another
/// word.
std::string key_hint(const std::string& name, const std::string& value);

}  // namespace zero
