#pragma once
// How a run uses the machine: device, threads, and MPI settings.
#include "comm/world/job.h"
#include "zero/config/config.h"

namespace zero {

/// Returns the device of this rank, one of `ranks_here` on its node. Throws InputError if the configuration does not
/// support that device.
c10::Device device_of(const Config& config, const Job& job, int ranks_here);

/// Divides the cores of a node among its ranks, unless OMP_NUM_THREADS is set.
void set_threads(const Job& job, c10::Device device);

/// Returns the MPI settings of [comm].
MpiOptions mpi_options_of(const Config& config);

}  // namespace zero
