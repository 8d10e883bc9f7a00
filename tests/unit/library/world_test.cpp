// What processes tell each other through a World.
#include "zero/library/include/zero/world.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/unit/library/worlds.h"

namespace zero {
namespace {

TEST(World, SumsAndMeansAreOfTheTypeThatCame) {
  on_worlds(3, [](const World& world) {
    const double rank = world.rank();
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf, at::kInt, at::kLong}) {
      const at::Tensor sum = world.sum(at::full({2, 2}, rank + 1, type));
      EXPECT_EQ(sum.scalar_type(), type);
      EXPECT_TRUE(at::equal(sum, at::full({2, 2}, 6, type))) << type;
    }
    EXPECT_EQ(world.mean(at::full({}, rank, at::kDouble)).item<double>(), 1);
  });
}

TEST(World, ComplexNumbersAreSummedAndGathered) {
  on_worlds(3, [](const World& world) {
    const double rank = world.rank();
    for (const at::ScalarType type : {at::kComplexFloat, at::kComplexDouble}) {
      const at::Tensor mine = at::full({2, 3}, c10::complex<double>(rank, 1), type);
      for (const bool conjugate : {false, true}) {
        const c10::complex<double> want(3, conjugate ? -3 : 3);
        const at::Tensor sum = world.sum((conjugate ? mine.conj() : mine).t());
        EXPECT_TRUE(at::equal(sum, at::full({3, 2}, want, type))) << type << conjugate;
      }
      EXPECT_TRUE(at::equal(world.mean(mine), at::full({2, 3}, c10::complex<double>(1, 1), type)));
      EXPECT_TRUE(at::equal(world.broadcast(mine), at::full({2, 3}, c10::complex<double>(0, 1), type)));
      const at::Tensor rows = world.gather_for_metrics(mine.narrow(0, 0, world.rank() == 0 ? 0 : 1));
      ASSERT_EQ(rows.size(0), 2);
      EXPECT_TRUE(at::equal(at::real(rows).select(1, 0).to(at::kDouble), at::tensor({1.0, 2.0}, at::kDouble)));
    }
  });
}

}  // namespace
}  // namespace zero
