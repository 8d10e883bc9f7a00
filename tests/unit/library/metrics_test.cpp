#include "zero/library/include/zero/metrics.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "tests/unit/library/worlds.h"
#include "tests/unit/message_of.h"

namespace zero {
namespace {

TEST(MeanMetric, IsOverTheRowsOfAllBatchesAndProcesses) {
  on_worlds(3, [](const World& world) {
    MeanMetric mean(world);
    for (int batch = 0; batch < 2; ++batch)  // process r has r rows, of the value 10 r + batch
      mean.update(world.rank() == 0 ? at::full({}, std::nan("")) : at::full({1}, 10.0F * world.rank() + batch),
                  world.rank());
    EXPECT_DOUBLE_EQ(mean.compute(), (10 + 2 * 20 + 11 + 2 * 21) / 6.0);
    EXPECT_DOUBLE_EQ(mean.compute(), (10 + 2 * 20 + 11 + 2 * 21) / 6.0);
    mean.reset();
    mean.update(at::full({}, double(world.rank()), at::kDouble).requires_grad_());
    EXPECT_DOUBLE_EQ(mean.compute(), 1);
  });
}

TEST(MeanMetric, HidesNoNumberThatCounts) {
  on_worlds(2, [](const World& world) {
    MeanMetric mean(world);
    mean.update(at::full({}, world.is_main() ? std::nan("") : 1.0), 1);
    EXPECT_TRUE(std::isnan(mean.compute()));
  });
}

TEST(MeanMetric, RefusesWhatIsNoMean) {
  on_worlds(2, [](const World& world) {
    MeanMetric mean(world);
    EXPECT_THAT(message_of<InputError>([&] { mean.update(at::ones({2})); }), ::testing::HasSubstr("take its mean()"));
    EXPECT_THAT(message_of<InputError>([&] { mean.update(at::ones({}), -1); }), ::testing::HasSubstr("at least 0"));
    EXPECT_THAT(message_of<InputError>([&] { mean.update(at::ones({}), std::nan("")); }),
                ::testing::HasSubstr("at least 0"));
    mean.update(at::ones({}), 0);
    EXPECT_THAT(message_of<InputError>([&] { (void)mean.compute(); }), ::testing::HasSubstr("no process has a value"));
  });
}

}  // namespace
}  // namespace zero
