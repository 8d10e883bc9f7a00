#pragma once
// The NCCL backend: collectives of CUDA tensors. A build without CUDA has absent.cpp instead, whose function
// throws.
#include <chrono>
#include <memory>

#include "comm/communicator.h"

namespace zero {

struct NcclOptions {
  std::chrono::duration<double> deadline{300};  // longest time that a collective may be under way
  int max_ctas = 8;                             // multiprocessors that the kernels of one communicator may take
  int ranks_per_gpu = 1;                        // more than one needs NCCL 2.30 and is for tests of correctness only
  bool one_rank_too = false;  // a group of one goes through NCCL as well, for tests; else nothing travels
  std::int64_t chunk_bytes = sum_chunk_bytes;  // another size for tests
};

/// The same ranks as `host`, on this rank's CUDA device. `host` carries the set-up and must outlive the result.
/// Collective.
///
/// A call returns when its kernel is on the current stream. A collective that is not done at its deadline, or that NCCL
/// reports as failed, is aborted by a watchdog; the next call then throws an Error that names the collective and the
/// missing ranks, those of other nodes as `host` learns of them. What an aborted step left in memory is worthless:
/// nothing is saved without FailureHandling::check().
///
/// Sums: within a node they follow the tree of the contract, to the same bits as on the CPU; what travels has the type
/// of the input. Between nodes they follow NCCL's order, and so does what travels: sum_type. Partial sums are held in
/// sum_type everywhere.
///
/// Throws InputError in a build without NCCL, when ranks have loaded different versions of it, and when ranks share a
/// GPU although the loaded version cannot.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, int device, const NcclOptions& options = {});

/// Whether the NCCL that was loaded lets several ranks use one GPU; false in a build without NCCL.
bool nccl_allows_ranks_on_one_gpu();

}  // namespace zero
