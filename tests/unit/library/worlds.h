#pragma once
// Worlds of simulated processes.
#include <functional>

#include "comm/sim/sim_world.h"
#include "zero/library/world_impl.h"

namespace zero {

/// Runs the body once per simulated process, each in its own thread.
inline void on_worlds(int size, const std::function<void(const World&)>& body) {
  SimWorld(size).run([&](Communicator& ranks, int) { body(world_of(ranks)); });
}

}  // namespace zero
