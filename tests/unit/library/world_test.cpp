// Communication between processes through a World.
#include "zero/library/include/zero/world.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "base/error.h"
#include "tests/unit/library/worlds.h"
#include "tests/unit/message_of.h"

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

TEST(World, IsOneInAProgram) {
  const World world = World::from_environment();
  EXPECT_EQ(world.size(), 1);
  EXPECT_THAT(message_of<InputError>([] { (void)World::from_environment(); }),
              ::testing::HasSubstr("pass the world on"));
  EXPECT_EQ(world.sum(at::ones({1})).item<double>(), 1);
}

TEST(World, MainWorkThatCallsTheOthersIsRefused) {
  on_worlds(3, [](const World& world) {
    const auto refusal = ::testing::AllOf(::testing::HasSubstr("all_reduce of 2 float"),
                                          ::testing::HasSubstr("inside work that one rank does"),
                                          ::testing::HasSubstr("outside that work, on all ranks"));
    const auto sum = [&] { world.sum(at::ones({2})); };
    EXPECT_THAT(message_of<InputError>([&] { world.on_main(sum); }), refusal);
    EXPECT_THAT(message_of<InputError>([&] { world.main_first(sum); }), refusal);
    EXPECT_THAT(message_of<InputError>([&] {
                  world.main_first([&] {
                    if (!world.is_main()) sum();
                  });
                }),
                refusal);
    sum();
  });
}

TEST(World, MeansAreRightWhereSumsDoNotFitTheType) {
  on_worlds(3, [](const World& world) {
    const auto mean_of = [&](double value, at::ScalarType type) {
      const at::Tensor mean = world.mean(at::full({2}, value, type));
      EXPECT_EQ(mean.scalar_type(), type == at::kHalf ? at::kHalf : at::kFloat);
      return mean[1].item<double>();
    };
    EXPECT_EQ(mean_of(1, at::kBool), 1);
    EXPECT_NEAR(mean_of(world.rank() == 1, at::kBool), 1 / 3.0, 1e-7);
    EXPECT_EQ(mean_of(200, at::kByte), 200);
    EXPECT_EQ(mean_of(-100, at::kChar), -100);
    EXPECT_EQ(mean_of(40000, at::kHalf), 40000);
  });
}

TEST(World, LargeWholeNumbersAreSummedExactly) {
  on_worlds(3, [](const World& world) {
    const std::int64_t large = (std::int64_t(1) << 60) + 1;
    EXPECT_EQ(world.sum(at::full({1}, large, at::kLong)).item<std::int64_t>(), 3 * large);
  });
}

// Ranks are threads with one generator, so each has its turn.
TEST(World, SeedsEachProcessByItselfAndTheMainOneByTheSeed) {
  static std::mutex mutex;
  on_worlds(3, [](const World& world) {
    const auto drawn = [&](std::uint64_t seed) {
      const std::lock_guard lock(mutex);
      world.manual_seed(seed);
      return at::randint(1 << 30, {1}, at::kLong);
    };
    const at::Tensor first = world.gather_for_metrics(drawn(5)), again = world.gather_for_metrics(drawn(5)),
                     other = world.gather_for_metrics(drawn(6));
    EXPECT_TRUE(at::equal(first, again));
    EXPECT_FALSE(at::equal(first, other));
    EXPECT_EQ(std::get<0>(at::_unique(first)).numel(), 3);
    const std::lock_guard lock(mutex);
    at::manual_seed(5);
    EXPECT_EQ(first[0].item<std::int64_t>(), at::randint(1 << 30, {1}, at::kLong).item<std::int64_t>());
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
