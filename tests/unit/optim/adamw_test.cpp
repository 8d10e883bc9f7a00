#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/numbers/half.h"
#include "base/numbers/number_types.h"
#include "tests/unit/simd_targets.h"
#include "tests/unit/wild_values.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace adamw_test {

struct Case {
  at::Tensor master, m, v, gradient, weights;

  UpdateSpan span(std::int64_t begin, std::int64_t count) const {
    return {master.narrow(0, begin, count),
            {m.narrow(0, begin, count), v.narrow(0, begin, count)},
            gradient.narrow(0, begin, count),
            weights.defined() ? weights.narrow(0, begin, count) : weights};
  }
  UpdateSpan span() const { return span(0, master.numel()); }
};

Case make(std::int64_t n, at::ScalarType gradient, std::optional<at::ScalarType> weights,
          at::ScalarType states = at::kFloat) {
  Case c{wild(n, 1, states), wild(n, 2, states), wild(n, 3, states).abs(), wild(n, 4, gradient), {}};
  if (weights) c.weights = at::zeros({n}, *weights);
  return c;
}

const StepFactors factors{{.lr = 3e-3, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8}, 0.37, 5};

void adamw_update(const UpdateSpan& span, const StepFactors& f) {
  static const std::unique_ptr<Optimizer> adamw = optimizer_row("adamw").make({});
  adamw->update(span, UpdateContext{f});
}

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

TEST(AdamW, EveryKindOfProcessorGivesTheRulesBits) {
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

TEST(AdamW, LargeSpansAndThreadsGiveTheSameBits) {
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

TEST(AdamW, CutIntoPiecesGivesTheSameBits) {
  const Case whole = make(5000, at::kFloat, at::kBFloat16), cut = make(5000, at::kFloat, at::kBFloat16);
  adamw_update(whole.span(), factors);
  for (std::int64_t at = 0; at < 5000; at += 333)
    adamw_update(cut.span(at, std::min<std::int64_t>(333, 5000 - at)), factors);
  EXPECT_TRUE(same_bits(whole.master, cut.master) && same_bits(whole.v, cut.v) &&
              same_bits(whole.weights, cut.weights));
}

TEST(AdamW, WeightsAreTheMasterRoundedAsLibTorchRounds) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const Case c = make(100001, at::kFloat, type);
    adamw_update(c.span(), factors);
    const at::Tensor rounded = c.master.to(type);
    const at::Tensor number = c.master.isnan().logical_not();
    EXPECT_TRUE(at::equal(c.weights.masked_select(number), rounded.masked_select(number))) << type;
    EXPECT_TRUE(at::equal(c.weights.isnan(), rounded.isnan())) << type;
  }
}

TEST(AdamW, Fp64FollowsTheRule) {
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

TEST(AdamW, RefusesTypesThatItHasNot) {
  const Case c = make(10, at::kDouble, {});
  EXPECT_ANY_THROW(adamw_update(c.span(), factors));
}

}  // namespace adamw_test
}  // namespace zero
