#pragma once
// The directory of a run: metrics.jsonl, config.toml (resolved), checkpoints/, model/ or adapter/, token_cache/. A mark
// shows that the directory belongs to a run (run_mark.h). Only rank 0, which holds the directory's lock, calls these
// functions.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file_calls.h"
#include "zero/config/config.h"
#include "zero/config/read_paths.h"

namespace zero {

/// Treatment of an earlier run in the directory. Only `overwritten` removes files.
enum class FormerRun : std::uint8_t { refused, overwritten, resumed };

/// Only checks, and throws InputError. An existing run must be overwritten or resumed. A resume needs an existing run,
/// without a config.toml of the user's own. Links and unmarked files are not overwritten. The directory must not be a
/// model's folder, and must be readable. A run must not remove or overwrite its own inputs.
void check_output_dir(const std::string& path, FormerRun former, const std::vector<ReadPath>& reads, FileCalls& calls);

/// Checks again, creates and marks the directory, removes an earlier run's files if it is overwritten, and writes the
/// resolved configuration. Keeps token caches. `id`: the id of a new run (run_mark.h). Throws InputError before the
/// first change, and Error after it.
void prepare_output_dir(const std::string& path, FormerRun former, const std::vector<ReadPath>& reads,
                        const std::string& resolved_config, const std::string& id, FileCalls& calls);

/// The folder of a run's checkpoints.
std::string checkpoints_root(const Config& config);

/// Returns true if the directory holds the final output of a run. Throws InputError if it cannot be inspected.
bool holds_result(const std::string& path, FileCalls& calls);

}  // namespace zero
