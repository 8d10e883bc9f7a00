#pragma once
// MatrixExchange: assembles whole matrices from sharded gradients. One exchange brings the parts of a matrix to its
// owner. The owner transforms the matrix, and another exchange sends the parts back (Liu et al. 2025, "Muon is Scalable
// for LLM Training", also gather each matrix to one rank). Owners are chosen so that all ranks have about the same
// work.
#include <functional>
#include <vector>

#include "zero/core/parameter_group.h"

namespace zero {

struct ExchangeRanks {
  /// The ranks over which gradients are divided, or that each hold all gradients. If matrices are sliced, these are the
  /// ranks that together hold one copy, and ranks of the tensor axis are adjacent.
  Communicator& sharing;
  Communicator& replicas;                     // the ranks that hold the same parts
  Placement gradients = Placement::resident;  // sharded: divided over `sharing` when the optimizer reads them
  at::Device device = at::kCPU;               // both communicators accept its tensors
  int slices = 1;                             // ranks of the tensor axis
};

/// Transforms, in place, the gradient of every matrix that the optimizer treats. An owner receives a few million
/// elements at a time, or one matrix. Ranks that hold full gradients send only results. Replicas copy the first
/// replica's results, since matrix products may depend on the number of threads. Collective.
void transform_matrices(const Optimizer& optimizer, const std::vector<ParameterGroup*>& groups,
                        const ExchangeRanks& ranks);

/// Returns the bytes that transform_matrices() takes in addition to the gradients, on the rank of `ranks.sharing` that
/// takes the most. `bytes_of`: the bytes that Optimizer::transform() takes in addition to a matrix of this shape.
/// Matrices may be on Meta.
std::int64_t transform_bytes(const Optimizer& optimizer, const std::vector<ParameterGroup*>& groups,
                             const ExchangeRanks& ranks,
                             const std::function<std::int64_t(const std::vector<std::int64_t>& shape)>& bytes_of);

}  // namespace zero
