#pragma once
// How a run uses its machine: device, threads, and the settings of MPI.
#include "comm/world/job.h"
#include "zero/config/config.h"

namespace zero {

/// The device of this rank. InputError where the configuration does not go with it.
c10::Device device_of(const Config& config, const Job& job);

/// Ranks of a node share its cores; OMP_NUM_THREADS has the last word.
void set_threads(const Job& job, c10::Device device);

/// [comm] for MPI.
MpiOptions mpi_options_of(const Config& config);

}  // namespace zero
