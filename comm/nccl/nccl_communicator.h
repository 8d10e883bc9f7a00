#pragma once
// The NCCL backend: collectives of CUDA tensors. A build without CUDA uses absent.cpp instead, whose function throws.
#include <chrono>
#include <memory>
#include <string>

#include "comm/communicator.h"

namespace zero {

struct NcclOptions {
  std::chrono::duration<double> deadline{300};  // longest time that a collective may be in flight
  int max_ctas = 8;                             // multiprocessors that the kernels of one communicator may use
  int ranks_per_gpu = 1;                        // more than one needs NCCL 2.30 and is only for tests of correctness
  bool one_rank_too = false;                    // for tests: a group of one rank calls NCCL too
  std::int64_t chunk_bytes = sum_chunk_bytes;   // tests set another size
};

/// Makes a communicator of the same ranks as `host`, for this rank's CUDA device. NCCL is set up through `host`, which
/// must outlive the result. Collective.
///
/// A call returns once its kernel is queued on the current stream. A watchdog aborts a collective that misses its
/// deadline or that NCCL reports as failed. The next call then throws an Error that names the collective and the
/// missing ranks. Ranks of other nodes are asked through `host`. Results of an aborted step are invalid: call
/// FailureHandling::check() before saving.
///
/// Sums within a node follow the tree of comm/communicator.h, so they equal the CPU's bit for bit, and send the input's
/// type. Sums between nodes follow NCCL's order and send sum_type. Partial sums are always held in sum_type.
///
/// Throws InputError in a build without NCCL, and if ranks have loaded different versions of NCCL. Also throws if ranks
/// share a GPU but the loaded version does not support that.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, int device, const NcclOptions& options = {});

/// True if the loaded NCCL lets several ranks use one GPU. False in a build without NCCL.
bool nccl_allows_ranks_on_one_gpu();

/// The loaded NCCL, its version and path; empty in a build without NCCL.
std::string nccl_description();

}  // namespace zero
