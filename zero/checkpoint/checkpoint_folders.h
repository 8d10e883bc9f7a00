#pragma once
// CheckpointFolders: the checkpoints of a run by their names. step-NNNNNNNN is complete, because it got this name when
// all that it holds was durable; with .tmp behind it, it is being written or removed, or was when the run ended; with
// .damaged it did not verify when a run was resumed, and waits for its owner to look at it; with .later it is of a run
// before one that began anew and saved an earlier step; with .replaced it gives its name to another of the same step, on
// a file system that cannot exchange two names, and take_back() returns the name where a kill came in between;
// with .kept it holds files that no run writes, which stayed when the checkpoint that they were put beside was removed.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file_calls.h"

namespace zero {

class CheckpointFolders {
 public:
  /// `root`: the folder "checkpoints" of a run, which need not exist.
  CheckpointFolders(FileCalls& calls, const std::string& root) : calls_(calls), root_(root) {}

  // InputError from every member when a folder cannot be listed: its checkpoints may be there all the same.
  const std::string& root() const { return root_; }
  std::string path(std::int64_t step) const;
  std::string temporary_path(std::int64_t step) const { return path(step) + ".tmp"; }

  /// Steps of the complete ones, newest first: those that hold a manifest.
  std::vector<std::int64_t> steps() const;
  /// Steps whose names are taken, by complete ones or by what is none, newest first.
  std::vector<std::int64_t> names() const;

  /// Makes the root and the folders above it where they are missing.
  void make_root();
  /// An empty temporary folder for a step, and the root where it is missing.
  void begin(std::int64_t step);
  /// The temporary folder, all of which is durable, gets its name, and the name is made durable. A complete one of this
  /// name is replaced: at every instant one of the two has the name, or take_back() gives it to the former one. Puts
  /// aside what has the name and is no checkpoint.
  void publish(std::int64_t step);
  /// Gives its name back to each complete one that was being replaced when a run was killed. Returns how many.
  int take_back();
  /// Removes complete ones beyond the newest `keep`.
  void prune(std::int64_t keep);
  /// Removes what was being written, replaced or removed when a run ended, or when a call failed. Returns how many.
  /// Nothing is being written meanwhile.
  int sweep();
  /// Gives the one of `step` the name of a damaged one, or of a later one.
  enum class Aside : std::uint8_t { damaged, later };
  void set_aside(std::int64_t step, Aside as);
  /// Removes the temporary folder of a step that was given up, or warns where it cannot.
  void discard(std::int64_t step);
  /// Removes a folder of these names with the files of a checkpoint; of a link the link. With other files in it, it is
  /// put aside.
  void remove(const std::string& folder);

 private:
  bool is_complete(std::int64_t step) const { return is_complete(path(step)); }
  bool is_complete(const std::string& folder) const;
  void replace(std::int64_t step);
  bool gone(const std::string& path);
  void put_aside(const std::string& folder);

  FileCalls& calls_;
  std::string root_;
};

}  // namespace zero
