#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "examples/cpp/dit/adaptive_layer_norm.h"
#include "tests/unit/message_of.h"
#include "zero/library/include/zero/nn/rms_norm.h"

namespace zero::nn {
namespace {

TEST(RMSNorm, IsTheFormulaWithItsGradients) {
  RMSNorm norm(6, 0.1);
  norm->to(at::kDouble);
  {
    const at::NoGradGuard no_grad;
    norm->weight.copy_(at::arange(1, 7));
  }
  const at::Tensor x = at::randn({2, 3, 6}, at::kDouble).requires_grad_();
  const at::Tensor weight = norm->weight.detach().clone().requires_grad_(), plain = x.detach().clone().requires_grad_();
  const at::Tensor expected = plain * (plain.square().mean(-1, true) + 0.1).rsqrt() * weight;
  const at::Tensor y = norm(x);
  EXPECT_TRUE(y.allclose(expected, 1e-12, 1e-12));
  y.pow(3).sum().backward();
  expected.pow(3).sum().backward();
  EXPECT_TRUE(x.grad().allclose(plain.grad(), 1e-11, 1e-11));
  EXPECT_TRUE(norm->weight.grad().allclose(weight.grad(), 1e-11, 1e-11));
}

TEST(RMSNorm, TakesNoRowsAndRefusesOtherSizes) {
  RMSNorm norm(4);
  const at::Tensor none = at::randn({0, 5, 4}).requires_grad_();
  norm(none).sum().backward();
  EXPECT_EQ(none.grad().sizes(), none.sizes());
  EXPECT_EQ(norm->weight.grad().abs().sum().item<double>(), 0);
  EXPECT_THAT(message_of<InputError>([&] {
                norm(at::randn({2, 5}));
              }),
              ::testing::HasSubstr("its last dimension is 4"));
}

TEST(AdaptiveLayerNormZero, BeginsAsTheIdentityAndFollowsItsCondition) {
  AdaptiveLayerNormZero ada(4, 3);
  const at::Tensor x = at::randn({2, 5, 4}), condition = at::randn({2, 3});
  for (const AdaptiveBranch& branch : ada(condition)) {
    EXPECT_TRUE(branch.gated(x, at::randn({2, 5, 4})).equal(x));
    EXPECT_TRUE(branch.norm(x).allclose(at::layer_norm(x, {4}, {}, {}, 1e-6)));
  }
  const at::NoGradGuard no_grad;
  ada->linear->weight.normal_();
  const at::Tensor all = at::linear(at::silu(condition), ada->linear->weight, ada->linear->bias).view({2, 2, 3, 4});
  const auto branches = ada(condition);
  ASSERT_EQ(branches.size(), 2u);
  for (std::int64_t b = 0; b < 2; ++b) {
    const AdaptiveBranch& branch = branches[std::size_t(b)];
    const auto part = [&](std::int64_t p) { return all.select(1, b).select(1, p).unsqueeze(1); };
    EXPECT_TRUE(branch.norm(x).allclose(at::layer_norm(x, {4}, {}, {}, 1e-6) * (1 + part(1)) + part(0)));
    EXPECT_TRUE(branch.gated(x, x).allclose(x + part(2) * x));
  }
}

}  // namespace
}  // namespace zero::nn
