#pragma once
// Shared code of tests with failing saves: engines of tiny runs, and the contents of a disk as a reader sees them.
#include <functional>
#include <memory>

#include "tests/sim/checkpoint_bench.h"

namespace zero::testing {

constexpr int ranks = 2;  // of tiny runs

inline RunOptions tiny_run() {
  RunOptions run;
  run.config = small_config(false);
  run.stage = 3;
  run.ranks = ranks;
  run.steps = 0;
  run.compute = at::kFloat;
  run.master = at::kFloat;
  return run;
}

/// Runs the body on every rank with an engine.
inline void with_engines(const std::function<void(Engine& engine, int rank)>& body) {
  run_training(tiny_run(), [&](Engine& engine, int rank, int) { body(engine, rank); });
}

/// Returns the newest checkpoint that passes verification, as a reader sees it; -1 if there is none.
inline std::int64_t newest_good(MemoryDisk& disk) {
  const auto calls = disk.calls();
  const CheckpointFolders folders(*calls, "/disk/checkpoints");
  for (const std::int64_t step : folders.steps()) {
    try {
      SavedStates(*calls, folders.path(step)).verify();
      return step;
    } catch (const Error&) {
    }
  }
  return -1;
}

/// Returns true if every folder with the name of a complete checkpoint is complete.
inline bool all_good(MemoryDisk& disk) {
  const auto calls = disk.calls();
  const CheckpointFolders folders(*calls, "/disk/checkpoints");
  for (const std::int64_t step : folders.steps()) SavedStates(*calls, folders.path(step)).verify();
  return true;
}

/// Runs the body with one fresh disk for all ranks, with barriers before and after.
template <class Body>
void on_fresh_disk(Engine& engine, int rank, std::unique_ptr<MemoryDisk>& disk, const Body& body) {
  if (rank == 0) disk = std::make_unique<MemoryDisk>("/disk");
  engine.host().barrier();
  body(*disk);
  engine.host().barrier();
}

}  // namespace zero::testing
