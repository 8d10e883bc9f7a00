#pragma once
// MatrixExchange: assembles whole matrices from sharded gradients. One exchange brings the parts of a matrix to its
// owner, the owner transforms the matrix, and another exchange sends the parts back (as Liu et al. 2025, "Muon is
// Scalable for LLM Training", gather matrices to one rank). Owners are chosen so that all ranks have about the same
// work.
#include <functional>
#include <vector>

#include "zero/core/parameter_group.h"

namespace zero {

struct ExchangeRanks {
  /// The ranks that divide the gradients, or that all hold them whole. If matrices are cut, the ranks that hold one
  /// copy of them between them: those of the tensor axis are neighbours.
  Communicator& sharing;
  Communicator& replicas;                     // the ranks that hold the same parts
  Placement gradients = Placement::resident;  // sharded: `sharing` divides them, as the optimizer sees them
  at::Device device = at::kCPU;               // both communicators take its tensors
  int slices = 1;                             // ranks of the tensor axis
};

/// Transforms, in place, the gradient of every matrix that the optimizer treats. An owner receives a few million
/// elements at a time, or one matrix. Ranks that hold gradients whole send results only. Replicas get the bits of the
/// first, since products of matrices may depend on the number of threads. Collective.
void transform_matrices(const Optimizer& optimizer, const std::vector<ParameterGroup*>& groups,
                        const ExchangeRanks& ranks);

/// The bytes that transform_matrices() takes next to the gradients, on the fullest rank of `ranks.sharing`. `bytes_of`:
/// the bytes that Optimizer::transform() takes next to a matrix of this shape. Matrices may be on Meta.
std::int64_t transform_bytes(const Optimizer& optimizer, const std::vector<ParameterGroup*>& groups,
                             const ExchangeRanks& ranks,
                             const std::function<std::int64_t(const std::vector<std::int64_t>& shape)>& bytes_of);

}  // namespace zero
