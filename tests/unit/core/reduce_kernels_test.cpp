#include "zero/core/kernels/reduce_kernels.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/simd_targets.h"
#include "tests/unit/wild_values.h"

namespace zero {
namespace {

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

TEST(ReduceKernels, ExactSquaresKnowNoDivision) {
  const int before = at::get_num_threads();
  for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const std::int64_t n = 70001;
    auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{5});
    const at::Tensor x = at::randn({n}, generator, at::kDouble).to(type);
    at::set_num_threads(1);
    ExactSum whole;
    add_squares(whole, x);
    EXPECT_NEAR(whole.value(), sum_of_squares(x).sum_of_squares, 1e-12 * whole.value());
    with_every_simd_target([&](const char* target) {
      for (const int threads : {1, 3}) {
        at::set_num_threads(threads);
        for (const std::int64_t part : {exact_block, 37 * exact_block, 1100 * exact_block}) {
          ExactSum parts;
          for (std::int64_t at = 0; at < n; at += part) add_squares(parts, x.narrow(0, at, std::min(part, n - at)));
          EXPECT_EQ(parts.value(), whole.value()) << target << " " << type << " parts of " << part;
        }
      }
    });
  }
  at::set_num_threads(before);
  ExactSum none;
  add_squares(none, at::Tensor());
  EXPECT_EQ(none.value(), 0);
  at::Tensor infinite = at::ones({40});
  infinite[39] = INFINITY;
  add_squares(none, infinite);
  EXPECT_TRUE(std::isinf(none.value()));
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
