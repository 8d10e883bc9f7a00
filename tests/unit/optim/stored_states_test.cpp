#include "zero/optim/kernels/stored_states.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/numbers/stored_fp32.h"
#include "base/philox.h"

namespace zero {
namespace stored_states_test {

at::Tensor numbers(std::int64_t n) { return at::randn({n}, at::make_generator<at::CPUGeneratorImpl>(3), at::kFloat); }

at::Tensor rounded(const at::Tensor& from, const RoundingDraws& draws, std::int64_t first = 0) {
  const at::Tensor to = at::empty({from.numel()}, at::kBFloat16);
  round_stochastically(from, to, draws, first);
  return to;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) { return at::equal(a.view(at::kShort), b.view(at::kShort)); }

// Element by element, with the draws as stored_fp32.h assigns them.
TEST(StochasticRounding, DrawsByTheNumberOfTheElement) {
  const std::int64_t first = 100, n = 1000;
  const at::Tensor from = numbers(n);
  const RoundingDraws draws{7, 3, rounding_stream("model.norm.weight", "exp_avg")};
  const at::Tensor got = rounded(from, draws, first);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t element = first + i, in_group = element % 64;
    const auto words = philox_group({rounding_key(7, 3), draws.stream}, std::uint64_t(element / 64));
    const std::uint32_t word = words[std::size_t(in_group / 16)][in_group % 8],
                        draw = in_group / 8 % 2 ? word >> 16 : word & 0xFFFFu;
    const auto bits = std::bit_cast<std::uint32_t>(from[i].item<float>());
    ASSERT_EQ(std::uint16_t(got.view(at::kShort)[i].item<std::int16_t>()), std::uint16_t(stochastic_bf16(bits, draw)))
        << i;
  }
}

TEST(StochasticRounding, CutsAndThreadsChangeNoBit) {
  const std::int64_t n = 200'001;
  const at::Tensor from = numbers(n);
  const RoundingDraws draws{7, 3, 5};
  const at::Tensor whole = rounded(from, draws);
  const int before = at::get_num_threads();
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    for (const std::int64_t cut : {n, std::int64_t{70'000}, std::int64_t{4099}, std::int64_t{64}, std::int64_t{63}}) {
      const at::Tensor parts = at::empty_like(whole);
      for (std::int64_t begin = 0; begin < n; begin += cut) {
        const std::int64_t count = std::min(cut, n - begin);
        round_stochastically(from.narrow(0, begin, count), parts.narrow(0, begin, count), draws, begin);
      }
      EXPECT_TRUE(same_bits(parts, whole)) << threads << " threads, cut at " << cut;
    }
  }
  at::set_num_threads(before);
}

TEST(StochasticRounding, SeedStepTensorAndStateDrawAnew) {
  const at::Tensor from = numbers(4096);
  const std::uint64_t stream = rounding_stream("a", "exp_avg");
  const at::Tensor one = rounded(from, {1, 1, stream});
  EXPECT_TRUE(same_bits(one, rounded(from, {1, 1, stream})));
  for (const RoundingDraws& other :
       {RoundingDraws{2, 1, stream}, RoundingDraws{1, 2, stream}, RoundingDraws{1, 1, rounding_stream("b", "exp_avg")},
        RoundingDraws{1, 1, rounding_stream("a", "exp_avg_sq")}}) {
    // Two of two neighbours are the same in two of three cases: the mean of p^2 + (1 - p)^2.
    const double equal = (rounded(from, other) == one).to(at::kDouble).mean().item<double>();
    EXPECT_NEAR(equal, 2.0 / 3, 5 * std::sqrt(2.0 / 9 / 4096));
  }
}

TEST(StochasticRounding, TheMeanOverStepsIsTheNumber) {
  constexpr int steps = 4000;
  const at::Tensor from = numbers(256);
  at::Tensor sum = at::zeros({256}, at::kDouble);
  for (int step = 1; step <= steps; ++step) sum += rounded(from, {1, step, 5});
  const at::Tensor unit = at::pow(2.0, at::floor(at::log2(from.abs().to(at::kDouble))) - 7);  // between neighbours
  const at::Tensor off = (sum / steps - from) / unit;
  // A rounding's variance is at most a quarter of that squared.
  EXPECT_LT(off.abs().max().item<double>(), 5 * 0.5 / std::sqrt(steps));
  EXPECT_LT(std::abs(off.mean().item<double>()), 5 * 0.5 / std::sqrt(256.0 * steps));
  EXPECT_GT(((from.to(at::kBFloat16).to(at::kDouble) - from) / unit).abs().max().item<double>(), 0.4) << "to nearest";
}

TEST(SplitMaster, ComesBackToTheLastBit) {
  for (const std::int64_t n : {1, 15, 100'003}) {
    const at::Tensor master = numbers(n), weights = at::empty({n}, at::kBFloat16),
                     remainder = at::empty({n}, at::kShort), joined = at::empty({n}, at::kFloat);
    split_master(master, weights, remainder);
    EXPECT_GT((weights == master.to(at::kBFloat16)).to(at::kDouble).mean().item<double>(), 0.999) << "but for ties";
    join_master(weights, remainder, joined);
    EXPECT_TRUE(at::equal(master, joined)) << n;
  }
}

}  // namespace stored_states_test
}  // namespace zero
