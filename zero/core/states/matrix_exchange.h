#pragma once
// MatrixExchange: whole matrices out of sharded gradients. Parts come together at an owner by one exchange, the owner
// transforms the matrix, and parts go back by another (as Liu et al. 2025, "Muon is Scalable for LLM Training", gather
// matrices to one rank). Owners are chosen so that all ranks have about equally much to do.
#include <functional>
#include <vector>

#include "zero/core/parameter_group.h"

namespace zero {

struct ExchangeRanks {
  /// The ranks among which gradients are divided, or which all hold them whole. With slices those that hold one copy of
  /// the matrices between them: the ranks of the tensor axis are neighbours in it.
  Communicator& sharing;
  Communicator& replicas;                     // the ranks that hold the same parts
  Placement gradients = Placement::resident;  // which of the two, as an optimizer sees them
  at::Device device = at::kCPU;               // that both take tensors on
  int slices = 1;                             // ranks of the tensor axis
};

/// Transforms, in place, the gradient of every matrix that the optimizer treats. Of matrices on their way an owner holds a
/// few million elements at a time, or one matrix; who holds gradients whole sends results only. Replicas get the bits of
/// the first, since products of matrices may depend on the number of threads. Collective.
void transform_matrices(const Optimizer& optimizer, const std::vector<ParameterGroup*>& groups,
                        const ExchangeRanks& ranks);

/// Bytes that the fullest of `ranks.sharing` takes for it beside the gradients, where Optimizer::transform() of a matrix of
/// these sizes takes `bytes_of` beside the matrix. Matrices may be on Meta.
std::int64_t transform_bytes(const Optimizer& optimizer, const std::vector<ParameterGroup*>& groups,
                             const ExchangeRanks& ranks,
                             const std::function<std::int64_t(const std::vector<std::int64_t>& shape)>& bytes_of);

}  // namespace zero
