#include "zero/optim/optimizer.h"

#include <gtest/gtest.h>

#include "models/formats/safetensors.h"

namespace zero {
namespace {

/// Values that torch.optim.AdamW made (tests/data/optimizers.json holds its settings).
class AdamWReference : public testing::TestWithParam<at::ScalarType> {};

TEST_P(AdamWReference, TwelveStepsAgreeWithTorch) {
  const SafetensorsFile file(ZERO_TEST_DATA "/optimizers.safetensors");
  const at::ScalarType type = GetParam();
  const OptimizerOptions options{.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
  for (const std::string name : {"A", "B", "C"}) {
    const at::Tensor p = file.read("p0." + name).to(type).view(-1).clone();
    const at::Tensor m = at::zeros_like(p), v = at::zeros_like(p);
    for (int i = 0; i < 12; ++i) {
      const at::Tensor g = file.read("g" + std::to_string(i) + "." + name).to(type).contiguous();
      const StepFactors factors = step_factors(options, i + 1, options.lr, 1.0);
      factors.kernel({.master = p.data_ptr(),
                      .m = m.data_ptr(),
                      .v = v.data_ptr(),
                      .state_type = type,
                      .gradient = g.data_ptr(),
                      .gradient_type = type,
                      .n = p.numel()},
                     factors);
      if (i != 0 && i != 4 && i != 11) continue;
      const at::Tensor expected = file.read("adamw." + std::to_string(i) + "." + name).to(type).view(-1);
      // The reference itself is fp32: 12 roundings of half a unit in the last place of the largest entry are 7e-7 of
      // it.
      EXPECT_LT(((p - expected).abs().max() / expected.abs().max()).item<double>(), 7e-7) << name << " step " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AdamWReference, testing::Values(at::kFloat, at::kDouble));

TEST(Optimizer, DecaysMatricesOnly) {
  EXPECT_TRUE(decays({3, 4}));
  EXPECT_FALSE(decays({3}));
}

}  // namespace
}  // namespace zero
