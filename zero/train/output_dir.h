#pragma once
// The directory of a run: metrics.jsonl, config.toml (resolved), checkpoints/, model/ or adapter/.
#include <cstdint>
#include <string>

namespace zero {

/// What becomes of a run that the directory holds.
enum class FormerRun : std::uint8_t { refused, overwritten, resumed };

/// Refuses a directory that holds a run already, unless it is to be overwritten or resumed; and one that holds none to be
/// resumed. Writes nothing.
void check_output_dir(const std::string& path, FormerRun former);

/// Makes the directory, clears a former run's files from it unless that goes on, and writes the resolved configuration. On one rank.
void prepare_output_dir(const std::string& path, FormerRun former, const std::string& resolved_config);

/// Whether the directory holds what a run leaves at its end.
bool holds_result(const std::string& path);

}  // namespace zero
