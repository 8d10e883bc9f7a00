#pragma once
// Constraints between keys that depend only on the configuration.
#include "zero/config/config.h"

namespace zero {

/// Throws InputError for keys that contradict each other, or that need another key. This is the last step of
/// parse_config(), unless its caller does it.
void check_contradictions(const Config& config);

/// Returns the start of a message about one value of a key. For a key with one value: "--set data.train=a.bin:". For a
/// list the value is appended: "c.toml:6: [data] train = [ \"a.bin\", \"b.bin\" ]: b.bin".
std::string where_of(const Config& config, const std::string& key, const std::string& value);

}  // namespace zero
