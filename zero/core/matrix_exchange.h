#pragma once
// MatrixExchange: whole matrices out of sharded gradients. Parts come together at an owner by one exchange, the owner
// transforms the matrix, and parts go back by another (as Liu et al. 2025, "Muon is Scalable for LLM Training", gather
// matrices to one rank). Owners are chosen so that all ranks have about equally much to do.
#include <memory>
#include <vector>

#include "zero/core/parameter_group.h"

namespace zero {

struct ExchangeRanks {
  Communicator& sharing;  // the ranks among which gradients are divided, or who all hold them whole
  Placement gradients;    // which of the two, as an optimizer sees them
  at::Device device;      // that `sharing` takes tensors on
};

/// Transforms, in place, the gradient of every matrix that the optimizer treats. A few million elements for each rank are
/// on their way at a time. Collective.
void transform_matrices(const Optimizer& optimizer, const std::vector<std::unique_ptr<ParameterGroup>>& groups,
                        const ExchangeRanks& ranks);

}  // namespace zero
