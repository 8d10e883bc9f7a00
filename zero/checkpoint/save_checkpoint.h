#pragma once
// CheckpointSave: from the states of all ranks to one complete folder, or to none, while the ranks wait or while they
// train on. What a rank does alone, writing and syncing its files, is done behind it; where it is agreed that all have
// done their part is the caller's choice, so that collectives are made by the rank's own thread alone.
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
  /// Takes this rank's part of the states, all of its shard_bytes(); null: they are written as they are when it is
  /// waited for, through one chunk. All ranks have one, or none has.
  HostArena* copy = nullptr;
};

/// How a rank's part of what is under way stands. A failure is one of this rank that the others do not know of.
enum class SaveProgress : std::uint8_t { ended, under_way, failed };
/// Of two ranks together: a failure anywhere ends the waiting for others.
inline SaveProgress worse_of(SaveProgress a, SaveProgress b) { return std::max(a, b); }

class CheckpointSave {
 public:
  /// Begins the checkpoint of `position`: its empty folder and, with a copy, the states of this moment, which the models
  /// may change from then on. States, values, folders, calls and `control` outlive the save. `control`: the ranks, with
  /// the patience for those that write for longer. Collective; throws on all ranks alike.
  CheckpointSave(CheckpointModels models, const RunDescription& run, const RunPosition& position,
                 CheckpointFolders& folders, FileCalls& calls, Communicator& control, const SaveOptions& options = {});
  /// Waits for what this rank does, which it does not go on with. What was begun lies in the step's temporary folder.
  ~CheckpointSave();
  CheckpointSave(const CheckpointSave&) = delete;
  CheckpointSave& operator=(const CheckpointSave&) = delete;

  /// Of what go_on() would wait for. Not collective.
  SaveProgress progress() const;
  /// What this rank has spent on its parts so far. Not collective.
  std::chrono::duration<double> time() const;

  /// This rank's states need not be written any more: another rank has failed, as go_on() will say.
  void abandon() { abandoned_ = true; }

  /// Waits for what is under way on all ranks and begins what follows, if anything does: false when the folder is
  /// complete and durable, older ones beyond `keep` are gone, and ones of later steps are set aside. Throws on all ranks
  /// alike; the older ones are as they were then, what was begun lies in the step's temporary folder, and the save is
  /// at its end. Collective.
  bool go_on();

  /// Goes on to the end. Collective.
  void finish();

 private:
  enum class Part : std::uint8_t { states, name };  // what is under way
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
  ShardFormat format_;  // of the own file
  std::string folder_;  // temporary
  FileMark mark_;       // of the own file
  Part part_ = Part::states;
  std::atomic<bool> abandoned_ = false, failed_ = false;
  std::chrono::steady_clock::time_point part_begin_;
  std::chrono::duration<double> former_parts_{};
  std::atomic<double> part_seconds_ = 0;  // below 0: it has not ended
  std::future<void> work_;  // under way; the last member, so that nothing that it uses goes before it has ended
};

/// Writes the checkpoint of `position` while the ranks wait. When it returns, it is there; when it throws, it does on all
/// ranks (CheckpointSave::go_on()). Each rank holds one chunk of states beside its own. Collective.
void save_checkpoint(CheckpointModels models, const RunDescription& run, const RunPosition& position,
                     CheckpointFolders& folders, FileCalls& calls, Communicator& control,
                     const SaveOptions& options = {});

}  // namespace zero
