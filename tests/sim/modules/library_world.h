#pragma once
// A model of the library on simulated ranks.
#include <functional>

#include "comm/sim/sim_world.h"
#include "zero/library/include/zero/sharded.h"
#include "zero/library/world_impl.h"

namespace zero::testing {

/// Runs body(world) on this many ranks.
inline void on_ranks(int ranks, const std::function<void(const World&)>& body) {
  SimWorld(ranks).run([&](Communicator& communicator, int) { body(world_of(communicator)); });
}

/// The same; `files` makes a rank's file calls for reading and writing states.
inline void on_ranks(int ranks, const std::function<std::shared_ptr<FileCalls>(int rank)>& files,
                     const std::function<void(const World&)>& body) {
  SimWorld(ranks).run([&](Communicator& communicator, int rank) { body(world_of(communicator, files(rank))); });
}

}  // namespace zero::testing
