#pragma once
// Rules between keys that need nothing but the configuration itself.
#include "zero/config/config.h"

namespace zero {

/// Refuses keys that contradict each other or lack a partner: the last part of parse_config().
void check_contradictions(const Config& config);

/// The beginning of a message about one value of a key: "--set data.train=a.bin:" where the place shows just that value,
/// "c.toml:6: [data] train = [ \"a.bin\", \"b.bin\" ]: b.bin" where it shows others or none.
std::string where_of(const Config& config, const std::string& key, const std::string& value);

}  // namespace zero
