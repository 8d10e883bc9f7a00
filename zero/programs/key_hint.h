#pragma once
// A hint for unknown options that are keys of the configuration.
#include <string>

#include "zero/programs/stray_arguments.h"

namespace zero {

/// The KeyHint of programs with --set. If zero or another tool has a key called `name`, the hint says how to set that
/// key. Otherwise the hint is empty.
std::string key_hint(const std::string& name, const std::string& value);

/// All keys of the configuration, with that hint.
SettableKeys settable_keys();

}  // namespace zero
