#pragma once
// The one world of a test program under mpirun.
#include "comm/world/world.h"

namespace zero {

World& mpi_world();

}  // namespace zero
