#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "zero/optim/rules/composed.h"

namespace zero {
namespace {

TEST(OrderedSum, FusedSquaresHaveTheBitsOfSeparateOnes) {
  for (const std::int64_t numel : {1, 4095, 4096, 300'000, 17'000'000}) {
    const at::Tensor values = at::randn({numel}, at::kFloat), before = values.clone();
    EXPECT_TRUE(at::equal(ordered_sum_of_squares(values), ordered_sum(values.to(at::kDouble).square()))) << numel;
    EXPECT_TRUE(at::equal(values, before));
  }
}

}  // namespace
}  // namespace zero
