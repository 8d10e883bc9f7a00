#pragma once
// NewestCheckpoint: the checkpoint of a folder from which a run would go on.
#include <optional>
#include <string>
#include <vector>

#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

struct NewestCheckpoint {
  struct Whole {
    Manifest manifest;
    std::string folder;
  };
  /// Why a checkpoint is passed over.
  struct Damage {
    std::int64_t step = 0;
    std::string what;
  };
  std::optional<Whole> whole;   // none: no checkpoint is whole
  std::vector<Damage> damages;  // of newer ones

  /// -1: there is none.
  std::int64_t step() const { return whole ? whole->manifest.position.steps : -1; }
  /// Takes the whole checkpoint of another folder, and its damages. Forgets those of older steps.
  void take(NewestCheckpoint other);
};

/// Finds the newest checkpoint whose manifest is intact and whose files have their sizes. States are not read. Looks
/// again while another run adds and removes checkpoints. Throws InputError for what cannot be looked at. Changes
/// nothing.
NewestCheckpoint newest_checkpoint(const CheckpointFolders& folders, FileCalls& calls);

}  // namespace zero
