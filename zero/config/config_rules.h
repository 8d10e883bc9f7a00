#pragma once
// Rules between keys that need nothing but the configuration itself.
#include "zero/config/config.h"

namespace zero {

/// Refuses keys that contradict each other or lack a partner: the last part of parse_config().
void check_contradictions(const Config& config);

/// "txt", "jsonl" (for .json too: both hold examples) or "bin": the kind of a data file by its name; empty for any
/// other.
std::string data_kind(const std::string& path);

}  // namespace zero
