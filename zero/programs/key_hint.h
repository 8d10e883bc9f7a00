#pragma once
// A hint for unknown options that are keys of the configuration.
#include <string>

namespace zero {

/// The KeyHint of programs with --set. If zero or another tool has a key called `name`, it tells how to set that key.
/// Otherwise it is empty.
std::string key_hint(const std::string& name, const std::string& value);

}  // namespace zero
