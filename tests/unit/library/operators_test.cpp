#include "zero/library/include/zero/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "tests/unit/message_of.h"

namespace zero {
namespace {

using ::testing::StartsWith;

TEST(FusedOperators, TakeRowsOfAnyNumberOfDimensions) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{8}, {3, 8}, {2, 3, 8}, {2, 0, 8}, {0, 8}, {2, 2, 3, 8}}) {
    const at::Tensor x = torch::randn(shape), weight = torch::randn({8});
    const auto halves = x.chunk(2, -1);
    EXPECT_TRUE(at::allclose(fused_swiglu(x), at::silu(halves[0]) * halves[1], 1e-5, 1e-6)) << x.sizes();
    const at::Tensor normed = x * (x.square().mean(-1, true) + 1e-5).rsqrt() * weight;
    EXPECT_TRUE(at::allclose(fused_rms_norm(x, weight, 1e-5), normed, 1e-5, 1e-5)) << x.sizes();
  }
}

TEST(FusedOperators, SayWhatTheyDoNotTake) {
  const auto said = [](const auto& call) { return message_of<Error>(call); };
  for (const at::Tensor& x : {at::Tensor(), torch::ones({})}) {
    EXPECT_THAT(said([&] { fused_swiglu(x); }), StartsWith("zero::fused_swiglu: gate_up "));
    EXPECT_THAT(said([&] { fused_rms_norm(x, torch::ones({8}), 1e-5); }), StartsWith("zero::fused_rms_norm: x "));
    EXPECT_THAT(said([&] { fused_cross_entropy(x, torch::ones({3}, at::kLong)); }), StartsWith("zero::"));
    EXPECT_THAT(said([&] { fused_cross_entropy(torch::ones({3, 8}), x); }), StartsWith("zero::"));
    EXPECT_THAT(said([&] { fused_rms_norm(torch::ones({3, 8}), x, 1e-5); }), StartsWith("zero::rms_norm: weight is "));
  }
  EXPECT_THAT(said([] { fused_swiglu(torch::ones({2, 3, 5})); }), StartsWith("zero::swiglu: the length of gate_up's"));
  EXPECT_THAT(said([] { fused_swiglu(torch::ones({2, 4}, at::kLong)); }), StartsWith("zero::swiglu: gate_up is Long"));
  EXPECT_THAT(said([] {
                fused_cross_entropy(torch::ones({2, 4}), torch::full({2}, 4));
              }),
              StartsWith("zero::cross_entropy: targets are from 4 to 4"));
}

}  // namespace
}  // namespace zero
