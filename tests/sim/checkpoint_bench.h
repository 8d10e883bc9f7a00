#pragma once
// What the tests of checkpoints share: states of an engine by tensor, and saving and restoring in the middle of a short
// run.
#include <array>
#include <map>
#include <mutex>
#include <string>

#include "comm/agreement.h"
#include "tests/sim/memory_disk.h"
#include "tests/sim/training_run.h"
#include "zero/checkpoint/save_checkpoint.h"
#include "zero/checkpoint/saved_states.h"

namespace zero::testing {

/// Master weight and moments of every trained tensor, whole.
using States = std::map<std::string, std::array<at::Tensor, 3>>;

/// Adds what the engine's rank holds; the ranks are threads and may share one.
inline void add_states(Engine& engine, States& states) {
  static std::mutex mutex;  // of the test program
  const std::lock_guard lock(mutex);
  const at::ScalarType type = engine.options().precision.master;
  for (const auto& group : engine.groups()) {
    if (!group->spec().trainable) continue;
    group->visit_states(StateAccess::read, [&](const StateChunk& chunk) {
      const std::int64_t count = chunk.end - chunk.begin;
      void* const parts[] = {chunk.master, chunk.m, chunk.v};
      for (const FlatSlice& slice : group->layout().slices(group->own_begin() + chunk.begin, count)) {
        const TensorSpec& spec = group->layout().tensors()[slice.tensor].spec;
        auto& whole = states[spec.name];
        for (int s = 0; s < 3; ++s) {
          if (!whole[s].defined()) whole[s] = at::zeros({spec.numel()}, type);
          whole[s]
              .narrow(0, slice.tensor_begin, slice.count)
              .copy_(at::from_blob(parts[s], {count}, type).narrow(0, slice.range_begin, slice.count));
        }
      }
    });
  }
}

inline void expect_equal(const States& a, const States& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, states] : a)
    for (int s = 0; s < 3; ++s) EXPECT_TRUE(at::equal(states[s], b.at(name)[s])) << name << ", state " << s;
}

constexpr std::int64_t small_chunk = 4096;  // elements: several chunks a file

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

/// Into an engine whose frozen weights are loaded.
inline void restore_from(Engine& engine, int step, FileCalls& calls) {
  SavedStates saved(calls, CheckpointFolders(calls, "/disk/checkpoints").path(step));
  check_same_tensors(saved, engine);
  restore_states(saved, engine);
  engine.resume(saved.manifest().position.updates);
}

}  // namespace zero::testing
