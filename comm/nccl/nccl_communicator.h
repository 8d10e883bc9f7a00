#pragma once
// The NCCL backend: collectives of CUDA tensors. A build without CUDA uses absent.cpp instead, whose function throws.
#include <chrono>
#include <memory>

#include "comm/communicator.h"

namespace zero {

struct NcclOptions {
  std::chrono::duration<double> deadline{300};  // longest time that a collective may be in flight
  int max_ctas = 8;                             // multiprocessors that the kernels of one communicator may take
  int ranks_per_gpu = 1;                        // more than one needs NCCL 2.30 and is for tests of correctness only
  bool one_rank_too = false;                    // for tests: a group of one uses NCCL too; else nothing travels
  std::int64_t chunk_bytes = sum_chunk_bytes;   // another size for tests
};

/// The same ranks as `host`, on this rank's CUDA device. `host` carries the set-up and must outlive the result.
/// Collective.
///
/// A call returns when its kernel is on the current stream. A watchdog aborts a collective that is not done at its
/// deadline, or that NCCL reports as failed. The next call then throws an Error that names the collective and the
/// missing ranks; `host` reports those of other nodes. The memory of an aborted step is invalid: call
/// FailureHandling::check() before saving.
///
/// Sums within a node follow the tree of the contract, to the bits of the CPU, and send the type of the input. Sums
/// between nodes follow NCCL's order, and send sum_type. Partial sums are held in sum_type everywhere.
///
/// Throws InputError in a build without NCCL, and if ranks have loaded different versions of it. Also throws if ranks
/// share a GPU although the loaded version does not support that.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, int device, const NcclOptions& options = {});

/// True if the loaded NCCL lets several ranks use one GPU. False in a build without NCCL.
bool nccl_allows_ranks_on_one_gpu();

}  // namespace zero
