#pragma once
// CommentedConfig: a configuration as a file for people: only keys that matter to the run, each with its meaning.
#include <string>
#include <vector>

#include "zero/config/config.h"

namespace zero {

/// Returns the keys whose values differ from their defaults, those that are required, and those in `also`, by section
/// and in documentation order. Each key has its meaning in a comment above it. `head`: lines of a comment at the top.
/// Throws InternalError for a configuration with [[optimizer.group]], which has no row.
std::string commented_toml(const Config& config, const std::vector<std::string>& also,
                           const std::vector<std::string>& head);

}  // namespace zero
