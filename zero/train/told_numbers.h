#pragma once
// ToldNumbers: what ranks tell each other where a step or a part of a validation ends, as numbers in one small gather.
#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.h"

namespace zero {

/// What all ranks have: [ranks, n] fp64, of n numbers of each. Collective.
at::Tensor told_numbers(Communicator& ranks, const std::vector<double>& mine, CallTag tag);

/// Of the columns from `first` on: the order is that of micro-batches, first the first of all ranks.
double sum_of_turns(const at::Tensor& told, std::int64_t first);

}  // namespace zero
