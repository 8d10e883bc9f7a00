#pragma once
// The MPI backend, for CPU tensors. Groups on one node use shared memory. Other groups use messages.
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "comm/communicator.h"

namespace zero {

enum class SharedMemory { automatic, on, off };

struct MpiOptions {
  std::chrono::duration<double> deadline{300};  // longest wait for other ranks in one call
  SharedMemory shared_memory = SharedMemory::automatic;
  std::optional<int> named_rank;  // this process's number in messages; if not set, its rank in MPI_COMM_WORLD
  int slots = 4;                  // of the shared window, per rank
  std::size_t slot_bytes = std::size_t{512} << 10;
};

/// Makes a communicator of the MPI group with this Fortran handle (MPI_Comm_c2f). MPI's communicator is duplicated. If
/// shared memory is not available, `shared_memory = on` throws InputError on all ranks. With `automatic`, rank 0 then
/// logs one line. Collective.
std::unique_ptr<Communicator> make_mpi_communicator(int handle, const MpiOptions& options = {});

/// The Fortran handle of MPI_COMM_WORLD. MPI must have been started.
int mpi_world_handle();

}  // namespace zero
