#pragma once
// ToldNumbers: one small gather of numbers between ranks, after a step or a part of a validation.
#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.h"

namespace zero {

/// Gathers n numbers from each rank. Returns [ranks, n] in fp64. Collective.
at::Tensor told_numbers(Communicator& ranks, const std::vector<double>& mine, CallTag tag);

/// Sums the columns from `first` to the end, in the order of micro-batches: the first micro-batch of all ranks, then
/// the second.
double sum_of_turns(const at::Tensor& told, std::int64_t first);

}  // namespace zero
