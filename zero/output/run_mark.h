#pragma once
// The mark of a folder that this program's runs write: a small file in it. What holds no mark is somebody else's and is
// never removed; and of a marked folder only the files that a run writes by their names, so that what was put beside
// them stays.
#include <cstdint>
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// Whose a folder is: a run's directory, or a folder with a model or an adapter. Neither passes for the other.
enum class Mark : std::uint8_t { run, result };

/// Makes the folder where it is missing, and marks it. Error when it cannot be written; a folder that it made is
/// removed again.
void mark_folder(const std::string& folder, Mark mark, FileCalls& calls);
/// InputError when the folder cannot be looked at.
bool is_marked(const std::string& folder, Mark mark, FileCalls& calls);
bool is_marked(const std::string& folder, Mark mark);

/// Notes in a run's mark that the run has written a checkpoint, so that a start that finds none there knows that
/// something is missing. Error when it cannot be written.
void note_saved(const std::string& folder, FileCalls& calls);
/// Whether a run's mark says so. InputError when it cannot be read.
bool has_saved(const std::string& folder, FileCalls& calls);
/// Marks the folder as that of a run that begins, which has written no checkpoint yet.
void mark_run(const std::string& folder, const std::string& id, FileCalls& calls);
/// A random id, by which the checkpoints of a run are known wherever they are.
std::string new_run_id();
/// The id in the mark of a run's folder; empty where there is none. InputError when it cannot be read.
std::string run_id_of(const std::string& folder, FileCalls& calls);

/// Whether files of this name in a folder with a model or an adapter are this program's. The mark is none of them.
bool is_result_file(const std::string& name);

/// Of a folder with a model or an adapter: removes the files that this program gives such a folder, and then, when
/// nothing else is left in it, its mark and the folder. A link is never followed but for the folder itself. Error names
/// what cannot be removed.
void clear_result_folder(const std::string& folder, FileCalls& calls);

/// Removes the checkpoints of a folder, and the folder when nothing else is left in it. A checkpoint with other files
/// in it loses its name (CheckpointFolders::remove).
void clear_checkpoints(const std::string& folder, FileCalls& calls);

/// Whether a folder holds nothing but files that a process had not finished when it ended.
bool is_empty_but_for_unpublished(const std::string& folder, FileCalls& calls);
/// Removes such files.
void clear_unpublished(const std::string& folder, FileCalls& calls);

/// Removes a file where it is there. Error when it cannot be removed.
void remove_file(const std::string& path, FileCalls& calls);

}  // namespace zero
