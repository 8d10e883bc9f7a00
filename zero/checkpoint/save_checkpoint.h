#pragma once
// CheckpointSave: writes the states of all ranks to one folder, which becomes complete or never appears. Meanwhile the
// ranks wait or continue training. A background thread writes and syncs the rank's own files. The caller chooses when
// the ranks agree on progress, so only the rank's main thread calls collectives.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "offload/memory/host_arena.h"
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/checkpoint_models.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

struct SaveOptions {
  std::int64_t keep = 2;
  std::int64_t chunk_elements = ShardFormat::default_chunk_elements;
  /// Memory for a copy of this rank's states, all of its shard_bytes(). Null: go_on() writes them directly, one chunk
  /// at a time. All ranks have a copy, or none has.
  HostArena* copy = nullptr;
};

/// The progress of this rank's pending part. `failed`: on this rank; other ranks do not know it yet.
enum class SaveProgress : std::uint8_t { ended, under_way, failed };
/// Combines the progress of two ranks. A failure on one rank ends the wait for the others.
inline SaveProgress worse_of(SaveProgress a, SaveProgress b) { return std::max(a, b); }

class CheckpointSave {
 public:
  /// Begins the checkpoint of `position`: creates its empty folder and, if there is a copy, copies the states, so the
  /// models may change afterwards. States, values, folders, calls and `control` must outlive the save. `control`: a
  /// communicator of all ranks, with a timeout for long writes. If it throws, all ranks throw the same error.
  /// Collective.
  CheckpointSave(CheckpointModels models, const RunDescription& run, const RunPosition& position,
                 CheckpointFolders& folders, FileCalls& calls, Communicator& control, const SaveOptions& options = {});
  /// Waits for this rank's pending write and starts no other write. Written files stay in the step's temporary folder.
  ~CheckpointSave();
  CheckpointSave(const CheckpointSave&) = delete;
  CheckpointSave& operator=(const CheckpointSave&) = delete;

  /// The state of the work that go_on() would wait for. Not collective.
  SaveProgress progress() const;
  /// The time this rank has spent on its parts so far. Not collective.
  std::chrono::duration<double> time() const;

  /// Skips this rank's remaining writes: another rank has failed, as go_on() will report.
  void abandon() { abandoned_ = true; }

  /// Waits for the pending work of all ranks and begins the next part. Returns false when the folder is complete and
  /// durable. Older checkpoints beyond `keep` are then removed, and later ones are set aside. If it throws, all ranks
  /// throw the same error, and the save is over. Older checkpoints are then unchanged, and written files stay in the
  /// step's temporary folder. Collective.
  bool go_on();

  /// Calls go_on() until the save ends. Collective.
  void finish();

 private:
  enum class Part : std::uint8_t { states, name };  // the pending part
  void write_states();
  void write_copy();
  void write_name();
  void begin(std::function<void()> work);
  std::string shard_path() const;

  CheckpointModels models_;
  CheckpointFolders& folders_;
  FileCalls& calls_;
  Communicator& control_;
  Communicator& ranks_;
  int rank_;
  SaveOptions options_;
  std::vector<std::vector<ShardSection>> sections_;  // by rank
  Manifest manifest_;
  ShardFormat format_;  // of this rank's file
  std::string folder_;  // temporary
  FileMark mark_;       // of this rank's file
  Part part_ = Part::states;
  std::atomic<bool> abandoned_ = false, failed_ = false;
  std::chrono::steady_clock::time_point part_begin_;
  std::chrono::duration<double> former_parts_{};
  std::atomic<double> part_seconds_ = 0;  // negative: still running
  std::future<void> work_;                // last member: its destructor waits before other members are destroyed
};

/// Writes the checkpoint of `position` while the ranks wait. The checkpoint is complete when the call returns. If it
/// throws, all ranks throw the same error (CheckpointSave::go_on()). Each rank needs memory for one more chunk of
/// states. Collective.
void save_checkpoint(CheckpointModels models, const RunDescription& run, const RunPosition& position,
                     CheckpointFolders& folders, FileCalls& calls, Communicator& control,
                     const SaveOptions& options = {});

}  // namespace zero
