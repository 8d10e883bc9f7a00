#pragma once
// The one world of a test program under mpirun.
#include "comm/world/job.h"

namespace zero {

Job& mpi_world();

}  // namespace zero
