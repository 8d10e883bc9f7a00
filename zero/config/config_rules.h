#pragma once
// Rules between keys that depend on the configuration alone.
#include "zero/config/config.h"

namespace zero {

/// Refuses keys that contradict each other or lack a partner. This is the last part of parse_config().
void check_contradictions(const Config& config);

/// The start of a message about one value of a key. "--set data.train=a.bin:" if the place shows only that value, else
/// "c.toml:6: [data] train = [ \"a.bin\", \"b.bin\" ]: b.bin".
std::string where_of(const Config& config, const std::string& key, const std::string& value);

}  // namespace zero
