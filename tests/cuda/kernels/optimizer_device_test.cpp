// Every optimizer's step on a GPU against the host's.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include "zero/optim/kernels/device_step.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

/// A matrix and its states on one device, trained whole.
class Side {
 public:
  Side(const Optimizer& optimizer, const at::Tensor& p, at::Device device)
      : optimizer_(optimizer),
        p_(p.flatten().to(device).clone()),
        weights_(p_.to(at::kBFloat16)),
        shape_(p.sizes().vec()),
        statistics_(optimizer, {shape_}, device) {
    for (const StateSpec& state : optimizer.states(p.scalar_type()))
      states_.push_back(at::zeros({state.numel(p.numel())}, p_.options().dtype(state.type)));
    if (optimizer.starts_as_weights() >= 0) states_[std::size_t(optimizer.starts_as_weights())].copy_(p_);
    optimizer.start(statistics_);
  }

  void step(const at::Tensor& gradient, const StepFactors& factors, const at::Tensor* numbers) {
    const at::Tensor own = gradient.flatten().to(p_.device()).clone();
    UpdateContext context{factors};
    context.own_lr = factors.lr;
    context.statistics = &statistics_;
    context.numbers = numbers;
    for (; context.pass < optimizer_.passes(); ++context.pass) {
      statistics_.all_sums().zero_();
      optimizer_.update({p_, states_, own, weights_}, context);
      optimizer_.conclude(context);
      if (context.pass == 0 && optimizer_.transforms_matrices()) optimizer_.transform(own.view(shape_));
    }
  }

  at::Tensor p() const { return p_.cpu(); }
  at::Tensor weights() const { return weights_.cpu(); }

 private:
  const Optimizer& optimizer_;
  at::Tensor p_, weights_;
  std::vector<std::int64_t> shape_;
  Statistics statistics_;
  std::vector<at::Tensor> states_;
};

class OptimizerOnDevice : public testing::TestWithParam<int> {};

TEST_P(OptimizerOnDevice, TakesTheHostsSteps) {
  if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  const at::Device gpu(at::kCUDA, 0);
  const OptimizerRow& row = optimizer_table()[std::size_t(GetParam())];
  OptimizerOptions options = row.defaults;
  options.d0 = 1e-3;
  const auto optimizer = row.make(options);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const at::Tensor start = at::randn({72, 65}, generator, at::kFloat);
  Side host(*optimizer, start, at::kCPU), device(*optimizer, start, gpu);
  const at::Tensor numbers = at::zeros({StepNumbers::count}, at::TensorOptions().dtype(at::kDouble).device(gpu));
  for (int step = 1; step <= 3; ++step) {
    const at::Tensor gradient = at::randn({72, 65}, generator, at::kFloat);
    const StepFactors factors = step_factors(options, step, 0.01, 0.5);
    device_judge_step(numbers, {0, 2.0, options.beta1, options.beta2});
    host.step(gradient, factors, nullptr);
    device.step(gradient, factors, &numbers);
  }
  // Muon iterates in bf16 there. A code of 8 bits may flip where two are equally near.
  const double allowed = row.name == "muon" ? 2e-3 : row.name == "adamw8bit" ? 1e-3 : 1e-5;
  EXPECT_LT((device.p() - host.p()).abs().max().item<double>(), allowed);
  EXPECT_LT((device.weights() - device.p().to(at::kBFloat16)).abs().max().item<double>(), 1e-9);
}

// States move between a GPU and the host: the same step must come of either.
TEST(AdamWOnDevice, TakesTheHostsStepsToTheBit) {
  if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  const at::Device gpu(at::kCUDA, 0);
  const auto row = std::find_if(optimizer_table().begin(), optimizer_table().end(),
                                [](const OptimizerRow& row) { return row.name == "adamw"; });
  ASSERT_NE(row, optimizer_table().end());
  const auto optimizer = row->make(row->defaults);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const at::Tensor start = at::randn({72, 65}, generator, at::kFloat);
  Side host(*optimizer, start, at::kCPU), device(*optimizer, start, gpu);
  for (int step = 1; step <= 20; ++step) {
    const at::Tensor gradient = at::randn({72, 65}, generator, at::kFloat);
    const StepFactors factors = step_factors(row->defaults, step, 0.01 / step, 0.3);
    const at::Tensor numbers = step_numbers(factors).to(gpu);
    host.step(gradient, factors, nullptr);
    device.step(gradient, factors, &numbers);
    ASSERT_TRUE(device.p().equal(host.p())) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerOnDevice, testing::Range(0, int(optimizer_table().size())),
                         [](const auto& info) { return optimizer_table()[std::size_t(info.param)].name; });

}  // namespace
}  // namespace zero
