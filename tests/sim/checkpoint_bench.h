#pragma once
// Shared code of checkpoint tests: the states of an engine by tensor, and saving and restoring in the middle of a short
// run.
#include <map>
#include <mutex>
#include <string>

#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "tests/sim/memory_disk.h"
#include "tests/sim/training_run.h"
#include "zero/checkpoint/save_checkpoint.h"
#include "zero/checkpoint/saved_states.h"
#include "zero/checkpoint/state_shares.h"

namespace zero::testing {

/// Every trained tensor's full states by name, and the optimizer's statistics.
using States = std::map<std::string, std::map<std::string, at::Tensor>>;

/// Adds the states of the engine's rank. Ranks are threads and may share one.
inline void add_states(Engine& engine, States& states) {
  static std::mutex mutex;  // shared by the whole test program
  const std::lock_guard lock(mutex);
  for (const auto& group : engine.groups())
    for (const auto& shard : group->states()) {
      const std::vector<StateSpec> specs = group->visited_states(*shard);
      group->visit_states(*shard, StateAccess::read, [&](const StateChunk& chunk) {
        for (const FlatSlice& slice : shard->layout().slices(shard->begin() + chunk.begin, chunk.end - chunk.begin)) {
          const TensorSpec& spec = shard->layout().spec(slice.tensor);
          for (std::size_t s = 0; s < specs.size(); ++s) {
            at::Tensor& whole = states[spec.name][specs[s].name];
            if (!whole.defined()) whole = at::zeros({specs[s].numel(spec.numel())}, specs[s].type);
            auto* first = static_cast<std::byte*>(chunk.states[s]) + specs[s].bytes(slice.range_begin);
            whole.narrow(0, slice.tensor_begin / specs[s].grain, specs[s].numel(slice.count))
                .copy_(at::from_blob(first, {specs[s].numel(slice.count)}, specs[s].type));
          }
        }
      });
    }
  for (const SavedStatistic& statistic : saved_statistics(engine))
    states[statistic.name]["values"] = statistic.values.clone();
}

inline void expect_equal(const States& a, const States& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, states] : a)
    for (const auto& [state, value] : states)
      EXPECT_TRUE(at::equal(value, b.at(name).at(state))) << name << ", " << state;
}

constexpr std::int64_t small_chunk = 4096;  // in elements; gives several chunks per file

inline RunPosition position_at(Engine& engine, int step) {
  RunPosition position;
  position.steps = step;
  position.updates = engine.steps_done();
  return position;
}

inline void save_at(Engine& engine, int step, FileCalls& calls, std::int64_t keep = 2) {
  CheckpointFolders folders(calls, "/disk/checkpoints");
  save_checkpoint(engine, {}, position_at(engine, step), folders, calls, engine.host(),
                  {.keep = keep, .chunk_elements = small_chunk});
}

/// A save in the background, with a copy of the states.
struct SaveBehind {
  SaveBehind(Engine& engine, int step, FileCalls& calls, std::int64_t keep = 2)
      : ranks(engine.host()),
        copy(1, std::size_t(2 * shard_bytes(engine)[std::size_t(ranks.rank())] + (1 << 20)), MemoryCategory::buffers),
        folders(calls, "/disk/checkpoints"),
        save(engine, {}, position_at(engine, step), folders, calls, engine.host(),
             {.keep = keep, .chunk_elements = small_chunk, .copy = &copy}) {}

  /// Call it after a step, as a trainer does. Returns false when the save has ended.
  bool tend() {
    SaveProgress all = SaveProgress::ended;
    for (const std::int64_t one : all_gather_number(ranks, std::int64_t(save.progress())))
      all = worse_of(all, SaveProgress(one));
    if (all == SaveProgress::under_way) return true;
    if (all == SaveProgress::failed) save.abandon();
    return save.go_on();
  }

  Communicator& ranks;
  HostArena copy;
  CheckpointFolders folders;
  CheckpointSave save;
};

/// Restores into an engine that has loaded its frozen weights.
inline void restore_from(Engine& engine, int step, FileCalls& calls) {
  SavedStates saved(calls, CheckpointFolders(calls, "/disk/checkpoints").path(step));
  check_same_tensors(saved, engine);
  restore_states(saved, engine);
  engine.resume(saved.manifest().position.updates);
}

}  // namespace zero::testing
