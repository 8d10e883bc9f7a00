#pragma once
// CheckpointFolders: the checkpoints of a run, by folder name. A folder named step-NNNNNNNN is complete: it gets this
// name once all its files are durable. A suffix marks any other folder:
// - .tmp: being written or removed, or left unfinished by a killed run.
// - .damaged: failed verification at a resume; kept for the owner to inspect.
// - .later: from an earlier run that got further than the current one.
// - .replaced: about to be replaced by a new save of the same step, on file systems that cannot swap two names.
//   take_back() restores its name after a kill.
// - .kept: holds files that no run wrote, left when their checkpoint was removed.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file_calls.h"

namespace zero {

class CheckpointFolders {
 public:
  /// `root`: the folder "checkpoints" of a run, which may be missing.
  CheckpointFolders(FileCalls& calls, const std::string& root) : calls_(calls), root_(root) {}

  // Every member throws InputError if a folder cannot be listed, because its checkpoints may still exist.
  const std::string& root() const { return root_; }
  std::string path(std::int64_t step) const;
  std::string temporary_path(std::int64_t step) const { return path(step) + ".tmp"; }

  /// Steps of complete checkpoints (folders with a manifest), newest first.
  std::vector<std::int64_t> steps() const;
  /// Complete checkpoints as take_back() will leave them, newest first, each with the folder that holds it now.
  struct Complete {
    std::int64_t step = 0;
    std::string folder;
  };
  std::vector<Complete> resumable() const;
  /// Steps whose names are taken, by a complete checkpoint or by anything else, newest first.
  std::vector<std::int64_t> names() const;

  /// Creates the root and its missing parents.
  void make_root();
  /// Creates an empty temporary folder for a step, and the root if it is missing.
  void begin(std::int64_t step);
  /// Renames the step's temporary folder, whose files are durable, to its final name, and syncs the rename. A complete
  /// checkpoint of the same name is replaced. At every moment one of the two has the name, or take_back() can restore
  /// the old one. A folder of that name that is not a checkpoint is set aside.
  void publish(std::int64_t step);
  /// Restores the names of checkpoints that were being replaced when a run was killed. Returns their number.
  int take_back();
  /// Removes complete checkpoints beyond the newest `keep`.
  void prune(std::int64_t keep);
  /// Removes folders that were being written, replaced or removed when a run ended or a call failed. Returns their
  /// number. Call it only while nothing is being written.
  int sweep();
  /// Renames the checkpoint of `step` to mark it as damaged or later.
  enum class Aside : std::uint8_t { damaged, later };
  void set_aside(std::int64_t step, Aside as);
  /// Removes the temporary folder of an abandoned step; logs a warning if that fails.
  void discard(std::int64_t step);
  /// Removes one of these folders with its checkpoint files. If the folder is a link, removes only the link. A folder
  /// with other files in it is set aside instead.
  void remove(const std::string& folder);

 private:
  bool is_complete(std::int64_t step) const { return is_complete(path(step)); }
  bool is_complete(const std::string& folder) const;
  /// Checkpoints that were being replaced when a run was killed.
  std::vector<Complete> replaced_ones() const;
  void replace(std::int64_t step);
  bool gone(const std::string& path);
  void put_aside(const std::string& folder);

  FileCalls& calls_;
  std::string root_;
};

}  // namespace zero
