#pragma once
// The requirements that every backend must meet. A case gets the communicator of one rank; a test program runs each
// case on its own backend.
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace zero {

struct ConformanceCase {
  std::string name;
  void (*body)(Communicator&);  // checks with EXPECT_...; all ranks run it
};

const std::vector<ConformanceCase>& conformance_cases();

/// The cases of all_to_all, which conformance_cases() includes.
const std::vector<ConformanceCase>& all_to_all_cases();

/// Returns test values that every rank can compute for every other rank. Their sums are not exact, so the order of
/// summation shows.
at::Tensor sample(int rank, std::int64_t numel, at::ScalarType type);

/// The tree sum in its simplest form, in fp64, fp32 or integers. sum_tree() must equal it bit for bit.
at::Tensor reference_sum(const std::vector<at::Tensor>& inputs, at::ScalarType sum_type);

/// Returns true if two tensors have the same type, length and bytes.
bool same_bits(const at::Tensor& a, const at::Tensor& b);
#define EXPECT_SAME(a, b) EXPECT_TRUE(::zero::same_bits((a), (b)))

}  // namespace zero
