#pragma once
// KeyValues: a proposal to the user, as values of configuration keys.
#include <string>
#include <utility>
#include <vector>

#include "zero/config/config_keys.h"

namespace zero {

using KeyValues = std::vector<std::pair<std::string, Value>>;  // "section.key" and its value

/// Stores the values in the fields of their keys.
void set_keys(Config& config, const KeyValues& values);

/// Returns arguments for zero_train, quoted for a shell: "--set zero.stage=3 --set activation_checkpoint.mode=full".
std::string as_arguments(const KeyValues& values);

}  // namespace zero
