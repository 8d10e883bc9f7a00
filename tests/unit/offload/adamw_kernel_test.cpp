#include "offload/kernels/adamw_kernel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/numbers/half.h"
#include "base/numbers/number_types.h"
#include "offload/kernels/reduce_kernels.h"
#include "tests/unit/simd_targets.h"

namespace zero {
namespace {

struct Case {
  at::Tensor master, m, v, gradient, weights;

  OptimizerSpan span() const {
    return {master.data_ptr(),
            m.data_ptr(),
            v.data_ptr(),
            master.scalar_type(),
            gradient.data_ptr(),
            gradient.scalar_type(),
            weights.defined() ? weights.data_ptr() : nullptr,
            weights.defined() ? weights.scalar_type() : at::kFloat,
            master.numel()};
  }
};

/// Values over many magnitudes, denormals, zeros, infinities and NaN among them: also where a kernel's rounding is
/// delicate.
at::Tensor wild(std::int64_t n, std::uint64_t seed, at::ScalarType type) {
  if (n > 200000) return wild(100003, seed, type).repeat({n / 100003 + 1}).slice(0, 0, n).contiguous();
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  at::Tensor x =
      at::randn({n}, generator, at::kDouble) * at::pow(10.0, at::rand({n}, generator, at::kDouble) * 16 - 12);
  x.index_put_({at::arange(0, n, 97)}, 0.0);
  if (n > 300) {
    x[150] = INFINITY;
    x[211] = NAN;
    x[212] = 1e-41;
    x[213] = 3e-8;
  }
  return x.to(type);
}

Case make(std::int64_t n, at::ScalarType gradient, std::optional<at::ScalarType> weights,
          at::ScalarType states = at::kFloat) {
  Case c{wild(n, 1, states), wild(n, 2, states), wild(n, 3, states).abs(), wild(n, 4, gradient), {}};
  if (weights) c.weights = at::zeros({n}, *weights);
  return c;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

const StepFactors factors{.lr = 3e-3,
                          .beta1 = 0.9,
                          .beta2 = 0.95,
                          .eps = 1e-8,
                          .weight_decay = 0.1,
                          .gradient_scale = 0.37,
                          .step = 5,
                          .kernel = adamw_update};

/// The rule, an element at a time, in the order of operations that kernels have.
void update_plainly(const Case& c, const StepFactors& f) {
  const auto step = static_cast<double>(f.step);
  const auto keep = static_cast<float>(1 - f.lr * f.weight_decay);
  const auto step_size = static_cast<float>(f.lr / (1 - std::pow(f.beta1, step)));
  const auto inverse_root = static_cast<float>(1 / std::sqrt(1 - std::pow(f.beta2, step)));
  const auto scale = static_cast<float>(f.gradient_scale), b1 = static_cast<float>(1 - f.beta1),
             beta2 = static_cast<float>(f.beta2), b2 = static_cast<float>(1 - f.beta2), eps = static_cast<float>(f.eps);
  auto *p = c.master.data_ptr<float>(), *m = c.m.data_ptr<float>(), *v = c.v.data_ptr<float>();
  with_float_type(number_of(c.gradient.scalar_type()), [&]<class G>(G) {
    const auto* gradient = static_cast<const G*>(c.gradient.const_data_ptr());
    for (std::int64_t i = 0; i < c.master.numel(); ++i) {
      const float g = to_float(gradient[i]) * scale;
      m[i] = std::fma(g - m[i], b1, m[i]);
      v[i] = std::fma(v[i], beta2, g * g * b2);
      p[i] = p[i] * keep - m[i] * step_size / std::fma(std::sqrt(v[i]), inverse_root, eps);
    }
  });
  if (!c.weights.defined()) return;
  with_float_type(number_of(c.weights.scalar_type()), [&]<class W>(W) {
    auto* weights = static_cast<W*>(c.weights.data_ptr());
    for (std::int64_t i = 0; i < c.master.numel(); ++i) weights[i] = rounded<W>(p[i]);
  });
}

TEST(AdamWKernel, EveryKindOfProcessorGivesTheRulesBits) {
  for (const std::int64_t n : {1, 7, 16, 1003, 100001}) {
    for (const auto gradient : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (const std::optional<at::ScalarType> weights : {std::optional<at::ScalarType>(), std::optional(at::kFloat),
                                                          std::optional(at::kBFloat16), std::optional(at::kHalf)}) {
        const Case expected = make(n, gradient, weights);
        update_plainly(expected, factors);
        with_every_simd_target([&](const char* target) {
          const Case got = make(n, gradient, weights);
          adamw_update(got.span(), factors);
          EXPECT_TRUE(same_bits(got.master, expected.master)) << target << " n=" << n << " " << gradient;
          EXPECT_TRUE(same_bits(got.m, expected.m)) << target;
          EXPECT_TRUE(same_bits(got.v, expected.v)) << target;
          if (weights) {
            EXPECT_TRUE(same_bits(got.weights, expected.weights)) << target << " " << *weights;
          }
        });
      }
    }
  }
}

TEST(AdamWKernel, LargeSpansAndThreadsGiveTheSameBits) {
  const std::int64_t n = (std::int64_t{1} << 22) + 13;  // weights are written past the caches
  const Case expected = make(n, at::kBFloat16, at::kBFloat16);
  update_plainly(expected, factors);
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const Case got = make(n, at::kBFloat16, at::kBFloat16);
    adamw_update(got.span(), factors);
    EXPECT_TRUE(same_bits(got.master, expected.master) && same_bits(got.weights, expected.weights)) << threads;
  }
  at::set_num_threads(before);
}

TEST(AdamWKernel, CutIntoPiecesGivesTheSameBits) {
  const Case whole = make(5000, at::kFloat, at::kBFloat16), cut = make(5000, at::kFloat, at::kBFloat16);
  adamw_update(whole.span(), factors);
  for (std::int64_t at = 0; at < 5000; at += 333)
    adamw_update(slice(cut.span(), at, std::min<std::int64_t>(at + 333, 5000)), factors);
  EXPECT_TRUE(same_bits(whole.master, cut.master) && same_bits(whole.v, cut.v) &&
              same_bits(whole.weights, cut.weights));
}

TEST(AdamWKernel, WeightsAreTheMasterRoundedAsLibTorchRounds) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const Case c = make(100001, at::kFloat, type);
    adamw_update(c.span(), factors);
    const at::Tensor rounded = c.master.to(type);
    const at::Tensor number = c.master.isnan().logical_not();
    EXPECT_TRUE(at::equal(c.weights.masked_select(number), rounded.masked_select(number))) << type;
    EXPECT_TRUE(at::equal(c.weights.isnan(), rounded.isnan())) << type;
  }
}

TEST(AdamWKernel, Fp64FollowsTheRule) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(9);
  const auto draw = [&] { return at::randn({1001}, generator, at::kDouble); };
  const Case c{draw(), at::zeros({1001}, at::kDouble), at::zeros({1001}, at::kDouble), {}, {}};
  at::Tensor p = c.master.clone(), m = c.m.clone(), v = c.v.clone();
  StepFactors f = factors;
  for (f.step = 1; f.step <= 5; ++f.step) {
    Case now = c;
    now.gradient = draw();
    adamw_update(now.span(), f);
    const at::Tensor g = now.gradient * f.gradient_scale;
    p = p * (1 - f.lr * f.weight_decay);
    m = f.beta1 * m + (1 - f.beta1) * g;
    v = f.beta2 * v + (1 - f.beta2) * g * g;
    const at::Tensor m_hat = m / (1 - std::pow(f.beta1, f.step)), v_hat = v / (1 - std::pow(f.beta2, f.step));
    p = p - f.lr * m_hat / (v_hat.sqrt() + f.eps);
  }
  EXPECT_LT((c.master - p).abs().max().item<double>(), 1e-14);
}

TEST(AdamWKernel, RangesDecayOrNot) {
  const Case mixed = make(1000, at::kFloat, {}), decayed = make(1000, at::kFloat, {}),
             plain = make(1000, at::kFloat, {});
  StepFactors none = factors;
  none.weight_decay = 0;
  adamw_update(decayed.span(), factors);
  adamw_update(plain.span(), none);
  // Elements 100 to 1100 of a shard: the first 250 of them decay, the next 300 do not, the rest does.
  update_ranges(mixed.span(), factors, {{0, 350, true}, {350, 650, false}, {650, 2000, true}}, 100);
  const at::Tensor expected =
      at::cat({decayed.master.slice(0, 0, 250), plain.master.slice(0, 250, 550), decayed.master.slice(0, 550)});
  EXPECT_TRUE(same_bits(mixed.master, expected));
  EXPECT_ANY_THROW(update_ranges(mixed.span(), factors, {{0, 350, true}, {360, 2000, false}}, 100));
  EXPECT_ANY_THROW(update_ranges(mixed.span(), factors, {{0, 1099, true}}, 100));
}

TEST(AdamWKernel, RefusesTypesThatItHasNot) {
  const Case c = make(10, at::kDouble, {});
  EXPECT_ANY_THROW(adamw_update(c.span(), factors));
}

TEST(ReduceKernels, NormIsTheSameForThreadsAndProcessors) {
  const int before = at::get_num_threads();
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    for (const std::int64_t n : {1, 31, 33, 32768, 1000003}) {
      auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
      const at::Tensor x = at::randn({n}, generator, at::kDouble).to(type);
      at::set_num_threads(1);
      const double expected = sum_of_squares(x).sum_of_squares;
      EXPECT_NEAR(expected, x.to(at::kDouble).square().sum().item<double>(), 1e-12 * expected);
      with_every_simd_target([&](const char* target) {
        for (const int threads : {1, 2, 3}) {
          at::set_num_threads(threads);
          EXPECT_EQ(sum_of_squares(x).sum_of_squares, expected) << target << " " << type << " n=" << n;
        }
      });
    }
  }
  at::set_num_threads(before);
}

TEST(ReduceKernels, NormSeesWhatIsNotFinite) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    at::Tensor x = at::ones({70000}, type);
    EXPECT_TRUE(sum_of_squares(x).finite);
    x[69999] = -INFINITY;
    EXPECT_FALSE(sum_of_squares(x).finite);
    x[69999] = NAN;
    EXPECT_FALSE(sum_of_squares(x).finite);
  }
  EXPECT_TRUE(sum_of_squares(at::full({100}, 3e38f)).finite);
  EXPECT_EQ(sum_of_squares(at::Tensor()).sum_of_squares, 0);
}

TEST(ReduceKernels, PackConvertsAndAccumulatesAsLibTorch) {
  for (const auto to : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const auto from : {at::kFloat, at::kBFloat16, at::kHalf}) {
      with_every_simd_target([&](const char* target) {
        const at::Tensor source = wild(100003, 6, from), start = wild(100003, 8, to);
        const at::Tensor copied = start.clone(), added = start.clone();
        pack(copied, source, false);
        pack(added, source, true);
        EXPECT_TRUE(at::allclose(copied, source.to(to), 0, 0, true)) << to << from << target;
        EXPECT_TRUE(at::allclose(added, (start.to(at::kFloat) + source.to(at::kFloat)).to(to), 0, 0, true))
            << to << from;
      });
    }
  }
  const at::Tensor wide = at::ones({3}, at::kDouble);
  pack(wide, at::full({3}, 0.1, at::kDouble), true);
  EXPECT_EQ(wide[0].item<double>(), 1.0 + 0.1);
}

TEST(ReduceKernels, PackReadsTransposedSources) {
  const at::Tensor source = at::arange(12, at::kFloat).view({3, 4}).t(), flat = at::zeros({12});
  pack(flat, source, false);
  EXPECT_TRUE(at::equal(flat, source.contiguous().view(-1)));
  EXPECT_ANY_THROW(pack(at::zeros({11}), source, false));
}

}  // namespace
}  // namespace zero
