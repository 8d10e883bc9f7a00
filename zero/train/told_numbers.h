#pragma once
// ToldNumbers: one small gather of numbers between ranks, after a step or a part of a validation.
#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.h"

namespace zero {

/// Gathers n numbers of each rank. Returns [ranks, n] fp64. Collective.
at::Tensor told_numbers(Communicator& ranks, const std::vector<double>& mine, CallTag tag);

/// Sums the columns from `first` on, in the order of micro-batches: the first one of all ranks, then the second.
double sum_of_turns(const at::Tensor& told, std::int64_t first);

}  // namespace zero
