#pragma once
// The single world of a test program under mpirun.
#include "comm/world/job.h"

namespace zero {

Job& mpi_world();

}  // namespace zero
