#include "offload/kernels/reduce_kernels.h"

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
