// The promises of storage, boundary and recompute that the engine is built on, on small graphs.
#include "zero/core/buffers/flat_storage.h"

#include <ATen/ATen.h>
#include <c10/core/AutogradState.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "models/nn/recompute.h"
#include "zero/core/backward_hooks.h"

namespace zero {
namespace {

TEST(FlatStorage, ViewsComeBackToLifeWithTheMemory) {
  std::vector<float> first(16, 1.f), second(16, 2.f);
  FlatStorage storage(16, at::kFloat, at::kCPU);
  storage.attach(first.data());
  const at::Tensor view = storage.tensor().narrow(0, 4, 8).view({2, 4});
  const at::Tensor transposed = view.t();
  EXPECT_EQ(view.sum().item<float>(), 8.f);
  storage.detach();
  EXPECT_EQ(storage.tensor().storage().nbytes(), 0u);
  EXPECT_EQ(view.data_ptr(), reinterpret_cast<void*>(4 * sizeof(float)));  // null plus the view's offset
  storage.attach(second.data());
  EXPECT_EQ(view.sum().item<float>(), 16.f);
  EXPECT_EQ(transposed.sum().item<float>(), 16.f);
  EXPECT_EQ(static_cast<float*>(view.data_ptr()), second.data() + 4);
}

TEST(FlatStorage, RefusesToAttachOrDetachTwice) {
  std::vector<float> memory(4);
  FlatStorage storage(4, at::kFloat, at::kCPU);
  EXPECT_THROW(storage.detach(), InternalError);
  storage.attach(memory.data());
  EXPECT_THROW(storage.attach(memory.data()), InternalError);
}

// y = tanh(x w1) w2 as two units; weights vanish between forward and backward.
struct TwoUnits : BackwardHooks {
  TwoUnits() {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    values = at::arange(32, at::kDouble).mul(0.1).sin();
    storage = FlatStorage(32, at::kDouble, at::kCPU);
    attach();
    weights = {storage.tensor().narrow(0, 0, 16).view({4, 4}).detach().set_requires_grad(true),
               storage.tensor().narrow(0, 16, 16).view({4, 4}).detach().set_requires_grad(true)};
  }
  void attach() {
    memory.assign(values.data_ptr<double>(), values.data_ptr<double>() + 32);
    storage.attach(memory.data());
  }
  void release() {
    std::fill(memory.begin(), memory.end(), std::nan(""));  // poison: a use without the memory shows
    storage.detach();
  }
  void before_backward(int unit) override {
    events.push_back(10 + unit);
    if (!storage.attached()) attach();
  }
  void after_backward(int unit) override {
    events.push_back(20 + unit);
    had_gradient.push_back(weights[unit].grad().defined());
    if (unit == 0) release();
  }

  at::Tensor values;
  std::vector<double> memory;
  FlatStorage storage;
  std::vector<at::Tensor> weights;
  std::vector<int> events;
  std::vector<bool> had_gradient;
};

at::Tensor run(TwoUnits& units, const at::Tensor& x, bool again) {
  const RecomputedBody bodies[] = {[&](const at::Tensor& h) { return at::tanh(at::mm(h, units.weights[0])); },
                                   [&](const at::Tensor& h) { return at::tanh(at::mm(h, units.weights[1])); }};
  at::Tensor h = x;
  for (int u = 0; u < 2; ++u) {
    h = enter_unit(h, units, u);
    h = again ? recompute(bodies[u], h, {units.weights[u]}) : bodies[u](h);
    h = exit_unit(h, units, u);
  }
  const at::Tensor loss = h.square().sum();
  units.release();
  loss.backward();
  return loss;
}

class BackwardHooksTest : public ::testing::TestWithParam<bool> {};

TEST_P(BackwardHooksTest, GradientsSurviveReleasedWeightsAndHooksComeInOrder) {
  const at::Tensor input = at::arange(12, at::kDouble).mul(0.3).cos().view({3, 4});
  TwoUnits units;
  at::Tensor x = input.clone().set_requires_grad(true);
  run(units, x, GetParam());
  EXPECT_EQ(units.events, (std::vector<int>{11, 21, 10, 20}));
  EXPECT_EQ(units.had_gradient, (std::vector<bool>{true, true}));

  const at::Tensor w1 = units.values.narrow(0, 0, 16).view({4, 4}).clone().set_requires_grad(true);
  const at::Tensor w2 = units.values.narrow(0, 16, 16).view({4, 4}).clone().set_requires_grad(true);
  at::Tensor x2 = input.clone().set_requires_grad(true);
  at::tanh(at::mm(at::tanh(at::mm(x2, w1)), w2)).square().sum().backward();
  EXPECT_TRUE(at::equal(units.weights[0].grad(), w1.grad()));
  EXPECT_TRUE(at::equal(units.weights[1].grad(), w2.grad()));
  EXPECT_TRUE(at::equal(x.grad(), x2.grad()));
}

TEST_P(BackwardHooksTest, AUnitTrainsThoughItsInputNeedsNoGradient) {
  TwoUnits units;
  run(units, at::ones({3, 4}, at::kDouble), GetParam());
  EXPECT_EQ(units.events, (std::vector<int>{11, 21, 10}));  // the first unit is closed by the caller
  EXPECT_TRUE(units.weights[0].grad().defined());
  EXPECT_GT(units.weights[0].grad().abs().max().item<double>(), 0);
}

INSTANTIATE_TEST_SUITE_P(Recompute, BackwardHooksTest, ::testing::Bool());

TEST(BackwardHookGuards, AnInPlaceWriteOnAUnitsOutputIsAnError) {
  TwoUnits units;
  const at::Tensor y = exit_unit(at::mm(at::ones({2, 4}, at::kDouble), units.weights[0]), units, 0);
  EXPECT_THROW(y.add_(1), c10::Error);
}

}  // namespace
}  // namespace zero
