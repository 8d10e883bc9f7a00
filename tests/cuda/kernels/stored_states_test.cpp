// Compares states in fewer bytes on a GPU with the host's, to the bit. Skipped without a GPU.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include <limits>

#include "zero/core/states/state_shard.h"
#include "zero/optim/kernels/device_step.h"
#include "zero/optim/kernels/stored_states.h"
#include "zero/optim/optimizer_table.h"
#include "zero/optim/state_storage.h"

namespace zero {
namespace {

const at::Device gpu(at::kCUDA, 0);

class StoredStateKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  }
};

/// Random numbers of every exponent, with the edges among them.
at::Tensor numbers(std::int64_t n) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  at::Tensor x = at::randn({n}, generator, at::kFloat) * at::pow(2.0, at::randint(-140, 120, {n}, generator));
  x = x.to(at::kFloat);
  const float infinity = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  const float edges[] = {0, -0.0f, infinity, -infinity, most, -most, std::numeric_limits<float>::quiet_NaN()};
  for (std::int64_t i = 0; i < std::min<std::int64_t>(n / 2, std::ssize(edges)); ++i) x[2 * i] = edges[i];
  return x;
}

bool same_bits(const at::Tensor& on_device, const at::Tensor& host) {
  return at::equal(on_device.to(at::kCPU).view(at::kByte), host.view(at::kByte));
}

TEST_F(StoredStateKernels, RoundToTheHostsBits) {
  for (const std::int64_t n : {1, 63, 64, 1000, 100'001})
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{37}, std::int64_t{1} << 36}) {
      const at::Tensor from = numbers(n), want = at::empty({n}, at::kBFloat16),
                       got = at::zeros({n}, want.options().device(gpu)), taken = step_numbers({.step = 12}).to(gpu);
      const RoundingDraws draws{7, 12, rounding_stream("a", "exp_avg")};
      RoundingDraws there = draws;
      there.step = 99;  // issued; of these 12 were taken
      there.numbers = &taken;
      round_stochastically(from, want, draws, first);
      round_stochastically(from.to(gpu), got, there, first);
      EXPECT_TRUE(same_bits(got, want)) << n << " from " << first;
    }
}

TEST_F(StoredStateKernels, SplitAndJoinToTheHostsBits) {
  for (const std::int64_t n : {1, 63, 100'001}) {
    const at::Tensor master = numbers(n), weights = at::empty({n}, at::kBFloat16),
                     remainder = at::empty({n}, at::kShort), joined = at::empty({n}, at::kFloat),
                     weights_there = at::zeros({n}, weights.options().device(gpu)),
                     remainder_there = at::zeros({n}, remainder.options().device(gpu)),
                     joined_there = at::zeros({n}, joined.options().device(gpu));
    split_master(master, weights, remainder);
    join_master(weights, remainder, joined);
    split_master(master.to(gpu), weights_there, remainder_there);
    join_master(weights_there, remainder_there, joined_there);
    EXPECT_TRUE(same_bits(weights_there, weights)) << n;
    EXPECT_TRUE(same_bits(remainder_there, remainder)) << n;
    EXPECT_TRUE(same_bits(joined_there, joined)) << n;
  }
}

// The whole way of a span: widened, updated by AdamW's kernel, stored. Longer than what is widened at once.
TEST_F(StoredStateKernels, StatesTakeTheHostsStepsToTheBit) {
  const std::int64_t n = (std::int64_t{1} << 21) + 1000;
  const OptimizerRow& row = optimizer_row("adamw");
  const auto optimizer = row.make(row.defaults);
  std::vector<StateSpec> specs =
      stored_states(*optimizer, at::kFloat, {.bf16_states = true, .split_master = true, .seed = 5});
  specs.insert(specs.begin(), {"remainder", at::kShort});
  const auto shard_on = [&](at::Device device) {
    return std::make_unique<StateShard>(
        *optimizer, StateLayout(FlatLayout({{{"a", {n}}}}, 1), {StateTensor()}, 1), FlatRange{0, n}, specs,
        [&](std::int64_t elements) { return std::make_unique<ResidentStateStore>(elements, specs, device); }, device,
        5);
  };
  const auto host = shard_on(at::kCPU), device = shard_on(gpu);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const at::Tensor weights = at::randn({n}, generator, at::kFloat).to(at::kBFloat16), weights_there = weights.to(gpu);
  for (int step = 1; step <= 2; ++step) {
    const at::Tensor gradient = at::randn({n}, generator, at::kFloat).to(at::kBFloat16);
    const StepFactors factors = step_factors(row.defaults, step, 0.01, 0.5);
    const at::Tensor numbers = step_numbers(factors).to(gpu);
    UpdateContext context{factors};
    host->update(context, weights, gradient);
    context.numbers = &numbers;
    device->update(context, weights_there, gradient.to(gpu));
  }
  EXPECT_TRUE(same_bits(weights_there, weights));
  std::vector<at::Tensor> states;
  host->store().for_each_chunk(StateAccess::read, [&](const StateChunk& chunk) { states = host->view(chunk, 0, n); });
  device->store().for_each_chunk(StateAccess::read, [&](const StateChunk& chunk) {
    const std::vector<at::Tensor> there = device->view(chunk, 0, n);
    for (std::size_t s = 0; s < states.size(); ++s) EXPECT_TRUE(same_bits(there[s], states[s])) << specs[s].name;
  });
}

}  // namespace
}  // namespace zero
