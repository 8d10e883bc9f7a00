#pragma once
// The use of the machine by a run: device, threads, and the settings of MPI.
#include "comm/world/job.h"
#include "zero/config/config.h"

namespace zero {

/// The device of this rank. Throws InputError if the configuration does not fit it.
c10::Device device_of(const Config& config, const Job& job);

/// Divides the cores of a node among its ranks, unless OMP_NUM_THREADS is set.
void set_threads(const Job& job, c10::Device device);

/// The MPI settings of [comm].
MpiOptions mpi_options_of(const Config& config);

}  // namespace zero
