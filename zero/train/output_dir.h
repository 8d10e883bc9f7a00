#pragma once
// The directory of a run: metrics.jsonl, config.toml (resolved), model/ or adapter/.
#include <string>

namespace zero {

/// Refuses a directory that holds a run already, unless it is to be overwritten. Writes nothing.
void check_output_dir(const std::string& path, bool overwrite);

/// Makes the directory, clears a former run's files from it, and writes the resolved configuration. On one rank.
void prepare_output_dir(const std::string& path, const std::string& resolved_config);

}  // namespace zero
