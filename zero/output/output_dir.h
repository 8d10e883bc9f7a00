#pragma once
// The directory of a run: metrics.jsonl, config.toml (resolved), checkpoints/, model/ or adapter/, token_cache/. It is
// marked as a run's (run_mark.h). Everything here is rank 0's, which holds the directory's lock.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file_calls.h"
#include "zero/config/config.h"
#include "zero/config/read_paths.h"

namespace zero {

/// What becomes of a run that the directory holds. Only one that is overwritten loses files.
enum class FormerRun : std::uint8_t { refused, overwritten, resumed };

/// Refuses a directory that holds a run already, unless it is to be overwritten or resumed; one that holds none to be
/// resumed, and a config.toml there that may be the user's own; one to be overwritten that holds under a run's names what no run marked, or a link; the folder of a model;
/// one where what the run removes or writes over is what it reads; and one that cannot be looked at. Writes nothing.
void check_output_dir(const std::string& path, FormerRun former, const std::vector<ReadPath>& reads, FileCalls& calls);

/// Checks again, makes and marks the directory, clears a former run's files from it where that is overwritten, and writes
/// the resolved configuration. Token caches stay. `id`: of a run that begins (run_mark.h). InputError only where nothing is
/// changed yet; from then on Error.
void prepare_output_dir(const std::string& path, FormerRun former, const std::vector<ReadPath>& reads,
                        const std::string& resolved_config, const std::string& id, FileCalls& calls);

/// The folder of a run's checkpoints.
std::string checkpoints_root(const Config& config);

/// Whether the directory holds what a run leaves at its end. InputError when it cannot be looked at.
bool holds_result(const std::string& path, FileCalls& calls);

}  // namespace zero
