#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "offload/quantized/block8.h"
#include "zero/optim/optimizer_table.h"
#include "zero/optim/rules/adamw8bit_loop.h"

namespace zero {
namespace adamw8bit_test {

constexpr std::int64_t n = 5 * 4096 + 100;  // the last block is a short one

struct Trained {
  at::Tensor p;
  std::vector<at::Tensor> states;
};

Trained start(at::ScalarType type, const Optimizer& optimizer) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
  Trained t{at::randn({n}, generator, type), {}};
  for (const StateSpec& state : optimizer.states(type)) t.states.push_back(at::zeros({state.numel(n)}, state.type));
  return t;
}

at::Tensor gradient_of(int step, at::ScalarType type) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t(step) + 10);
  return (at::randn({n}, generator, at::kDouble) * at::pow(10.0, at::rand({n}, generator, at::kDouble) * 4 - 4))
      .to(type);
}

void run(const Trained& t, at::ScalarType type, int steps, std::int64_t cut) {
  const auto optimizer = optimizer_row("adamw8bit").make({.name = "adamw8bit"});
  for (int i = 1; i <= steps; ++i) {
    const UpdateContext context{{{.lr = 1e-2, .weight_decay = 0.1, .beta2 = 0.95}, 0.5, i}};
    const at::Tensor gradient = gradient_of(i, type);
    for (std::int64_t begin = 0; begin < n; begin += cut) {
      const std::int64_t count = std::min(cut, n - begin);
      UpdateSpan span{t.p.narrow(0, begin, count), {}, gradient.narrow(0, begin, count), {}};
      for (std::size_t s = 0; s < 4; ++s) {
        const std::int64_t grain = s < 2 ? 1 : block8;
        span.states.push_back(t.states[s].narrow(0, begin / grain, (count + grain - 1) / grain));
      }
      optimizer->update(span, context);
    }
  }
}

// One step from zeros is AdamW's own; after it the moments are the nearest codes times the largest of their block.
TEST(AdamW8bit, RoundsMomentsToTheNearestCodeAfterAdamWsStep) {
  const auto optimizer = optimizer_row("adamw8bit").make({.name = "adamw8bit"});
  const Trained t = start(at::kDouble, *optimizer);
  const at::Tensor p = t.p.clone();
  run(t, at::kDouble, 1, n);
  const at::Tensor g = gradient_of(1, at::kDouble) * 0.5, m = g * (1 - 0.9), v = g * g * (1 - 0.95);
  const at::Tensor step = 1e-2 * (m / (1 - 0.9)) / ((v / (1 - 0.95)).sqrt() + 1e-8);
  EXPECT_LT((t.p - (p * (1 - 1e-2 * 0.1) - step)).abs().max().item<double>(), 1e-12);
  for (const auto& [map, moment, s] : {std::tuple(&signed_map(), m, 0), std::tuple(&unsigned_map(), v, 1)})
    for (const std::int64_t i : {std::int64_t{0}, std::int64_t{300}, n - 1}) {
      const std::int64_t first = i / block8 * block8, count = std::min(block8, n - first);
      const double largest = moment.narrow(0, first, count).abs().max().item<double>(), x = moment[i].item<double>();
      EXPECT_FLOAT_EQ(t.states[std::size_t(s) + 2][i / block8].item<float>(), float(largest));
      const float kept = map->codes()[t.states[std::size_t(s)][i].item<std::uint8_t>()];
      for (const float other : map->codes())
        EXPECT_LE(std::abs(kept - x / largest), std::abs(other - x / largest) + 1e-7);
    }
}

TEST(AdamW8bit, ThreadsAndCutsAtBlocksChangeNoBit) {
  const auto optimizer = optimizer_row("adamw8bit").make({.name = "adamw8bit"});
  const Trained whole = start(at::kFloat, *optimizer);
  run(whole, at::kFloat, 4, n);
  const int before = at::get_num_threads();
  for (const int threads : {1, 3})
    for (const std::int64_t cut : {block8, 7 * block8, n}) {
      at::set_num_threads(threads);
      const Trained other = start(at::kFloat, *optimizer);
      run(other, at::kFloat, 4, cut);
      EXPECT_TRUE(at::equal(other.p, whole.p));
      for (std::size_t s = 0; s < 4; ++s) EXPECT_TRUE(at::equal(other.states[s], whole.states[s])) << s;
    }
  at::set_num_threads(before);
}

// The second gradient takes back what the first one left, so that a largest moment of padding would show.
TEST(AdamW8bit, ComposedAsOnAGpuItTakesTheStepsOfTheLoop) {
  const auto optimizer = optimizer_row("adamw8bit").make({.name = "adamw8bit"});
  const Trained loop = start(at::kFloat, *optimizer), composed = start(at::kFloat, *optimizer);
  for (int i = 1; i <= 2; ++i) {
    const UpdateContext context{{{.lr = 1e-2, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95}, 1, i}};
    const at::Tensor gradient = gradient_of(1, at::kFloat) * (i == 1 ? 1 : -0.9);
    optimizer->update({loop.p, loop.states, gradient, {}}, context);
    composed_adamw8bit({composed.p, composed.states, gradient, {}}, context);
    for (std::size_t s = 2; s < 4; ++s) EXPECT_TRUE(at::allclose(composed.states[s], loop.states[s], 1e-2, 0)) << s;
    EXPECT_TRUE(at::allclose(composed.p, loop.p, 1e-3, 1e-4));
  }
}

// A quadratic bowl: 8 bits find the bottom as AdamW does.
TEST(AdamW8bit, ComesWhereAdamWComes) {
  const auto with = [](const std::string& name) {
    const auto optimizer = optimizer_row(name).make(optimizer_row(name).defaults);
    Trained t = start(at::kFloat, *optimizer);
    for (int i = 1; i <= 300; ++i) {
      const UpdateContext context{{{.lr = 0.05 * (1 - i / 301.0), .weight_decay = 0, .beta2 = 0.95}, 1, i}};
      optimizer->update({t.p, t.states, t.p - 1, {}}, context);
    }
    return (t.p - 1).abs().mean().item<double>();
  };
  EXPECT_LT(with("adamw"), 1e-3);
  EXPECT_LT(with("adamw8bit"), 1e-2);
}

}  // namespace adamw8bit_test
}  // namespace zero
