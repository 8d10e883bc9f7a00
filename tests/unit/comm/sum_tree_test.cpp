#include "comm/sum_tree.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "tests/unit/comm/conformance.h"

namespace zero {
namespace {

at::Tensor tree_sum(const std::vector<at::Tensor>& inputs, at::ScalarType out, at::ScalarType sum_type = at::kFloat) {
  std::vector<const void*> pointers;
  for (const at::Tensor& input : inputs) pointers.push_back(input.const_data_ptr());
  const at::Tensor result = at::empty({inputs[0].numel()}, out);
  sum_tree({pointers, inputs[0].scalar_type()}, {result.data_ptr(), out}, result.numel(), sum_type);
  return result;
}

TEST(SumTree, follows_the_tree_for_every_number_of_inputs) {
  for (int ranks = 1; ranks <= 40; ++ranks) {
    std::vector<at::Tensor> inputs;
    for (int r = 0; r < ranks; ++r) inputs.push_back(sample(r, 2500, at::kFloat));
    EXPECT_TRUE(at::equal(tree_sum(inputs, at::kFloat), reference_sum(inputs, at::kFloat))) << ranks;
  }
}

TEST(SumTree, rounds_sums_of_fp32_once_for_every_pair_of_types) {
  for (const at::ScalarType in : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const at::ScalarType out : {at::kFloat, at::kBFloat16, at::kHalf})
      for (int ranks = 1; ranks <= 9; ++ranks) {
        std::vector<at::Tensor> inputs, wide;
        std::vector<const void*> pointers;
        for (int r = 0; r < ranks; ++r) {
          inputs.push_back(sample(r, 2503, in));
          wide.push_back(inputs.back().to(at::kFloat));
          pointers.push_back(inputs.back().const_data_ptr());
        }
        const at::Tensor sum = reference_sum(wide, at::kFloat), before = sample(99, 2503, out), got = before.clone();
        EXPECT_TRUE(at::equal(tree_sum(inputs, out), sum.to(out))) << ranks << " " << in << " " << out;
        sum_tree({pointers, in}, {got.data_ptr(), out, true}, got.numel(), at::kFloat);
        EXPECT_TRUE(at::equal(got, (before.to(at::kFloat) + sum).to(out))) << ranks << " " << in << " " << out;
      }
}

TEST(SumTree, pairs_neighbours_first) {
  // Any other order loses or keeps other ones next to the large numbers.
  const auto one = [](float value) { return at::full({1}, value); };
  EXPECT_EQ(tree_sum({one(1), one(1e8f), one(1), one(-1e8f)}, at::kFloat).item<float>(), (1 + 1e8f) + (1 + -1e8f));
  EXPECT_EQ(tree_sum({one(3), one(1e8f), one(-1e8f)}, at::kFloat).item<float>(), (3 + 1e8f) + -1e8f);
}

TEST(SumTree, holds_partial_sums_in_the_wide_type) {
  const auto one = [](float value) { return at::full({1}, value, at::kBFloat16); };
  EXPECT_EQ(tree_sum({one(256), one(1), one(1), one(-256)}, at::kBFloat16).item<float>(), 2.0f);
}

TEST(SumTree, rounds_fp64_sums_once_to_small_types) {
  // 1 + 2^-9 + 2^-40 is just above the middle of two bf16 neighbours; through fp32 it would fall to the even one below.
  const auto one = [](double value) { return at::full({1}, value, at::kDouble); };
  EXPECT_EQ(tree_sum({one(1 + std::ldexp(1, -8)), one(std::ldexp(1, -40))}, at::kBFloat16, at::kDouble).item<float>(),
            1 + std::ldexp(1, -7));
  EXPECT_EQ(tree_sum({one(1 + std::ldexp(1, -8)), one(-std::ldexp(1, -40))}, at::kBFloat16, at::kDouble).item<float>(),
            1.0f);
  EXPECT_EQ(tree_sum({one(-1 - std::ldexp(1, -11)), one(-std::ldexp(1, -40))}, at::kHalf, at::kDouble).item<float>(),
            -1 - std::ldexp(1, -10));
}

TEST(SumTree, keeps_infinities_and_not_a_number) {
  const float inf = std::numeric_limits<float>::infinity();
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto one = [&](float value) { return at::full({9}, value, type); };
    EXPECT_EQ(tree_sum({one(inf), one(1)}, type)[8].item<float>(), inf);
    EXPECT_TRUE(std::isnan(tree_sum({one(inf), one(-inf)}, type)[8].item<float>()));
    EXPECT_TRUE(std::isnan(tree_sum({one(NAN), one(1), one(1)}, type)[0].item<float>()));
  }
}

TEST(SumTree, refuses_what_it_cannot_sum) {
  const at::Tensor bytes = at::zeros({4}, at::kByte), ints = at::zeros({4}, at::kInt);
  EXPECT_THROW(tree_sum({bytes, bytes}, at::kByte), InternalError);
  EXPECT_THROW(tree_sum({ints, ints}, at::kFloat), InternalError);
}

}  // namespace
}  // namespace zero
