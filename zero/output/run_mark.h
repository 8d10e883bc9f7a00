#pragma once
// The mark of a folder that this program's runs write: a small file in it. A folder without a mark belongs to someone
// else and is never removed. In a marked folder, only the names that a run writes are removed; other files stay.
#include <cstdint>
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// The kind of folder: a run's directory, or one with a model or an adapter. Neither counts as the other.
enum class Mark : std::uint8_t { run, result };

/// Creates the folder if it is missing, and marks it. If that fails, throws Error, and removes the folder if this call
/// created it.
void mark_folder(const std::string& folder, Mark mark, FileCalls& calls);
/// Throws InputError if the folder cannot be inspected.
bool is_marked(const std::string& folder, Mark mark, FileCalls& calls);
bool is_marked(const std::string& folder, Mark mark);

/// Records in a run's mark that the run has written a checkpoint. A later start that finds no checkpoint then knows
/// that one is missing. Throws Error if the mark cannot be written.
void note_saved(const std::string& folder, FileCalls& calls);
/// Returns true if a run's mark records a checkpoint. Throws InputError if the mark cannot be read.
bool has_saved(const std::string& folder, FileCalls& calls);
/// Marks the folder as belonging to a new run without checkpoints.
void mark_run(const std::string& folder, const std::string& id, FileCalls& calls);
/// Returns a random id that identifies a run's checkpoints, wherever they are.
std::string new_run_id();
/// Returns the id in the mark of a run's folder; empty if there is none. Throws InputError if the mark cannot be read.
std::string run_id_of(const std::string& folder, FileCalls& calls);

/// Returns true if this program writes files of this name into a folder with a model or an adapter. Returns false for
/// the mark.
bool is_result_file(const std::string& name);

/// Clears a folder with a model or an adapter: removes the files that this program writes there. If nothing else is
/// left, also removes the mark and the folder. Follows no link except the folder itself. Throws Error that names
/// whatever cannot be removed.
void clear_result_folder(const std::string& folder, FileCalls& calls);

/// Removes the checkpoints of a folder, and the folder if nothing else is left. A checkpoint with foreign files is
/// renamed instead (CheckpointFolders::remove).
void clear_checkpoints(const std::string& folder, FileCalls& calls);

/// Returns true if a folder holds nothing but unfinished files of a process that has ended.
bool is_empty_but_for_unpublished(const std::string& folder, FileCalls& calls);
/// Removes such unfinished files.
void clear_unpublished(const std::string& folder, FileCalls& calls);

/// Removes a file if it exists. Throws Error if it cannot be removed.
void remove_file(const std::string& path, FileCalls& calls);

}  // namespace zero
