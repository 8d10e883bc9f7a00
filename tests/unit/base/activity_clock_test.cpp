// Every moment counts once, and the parts add up to the whole.
#include "base/activity_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace zero {
namespace activity_clock_test {

thread_local std::int64_t now = 0;
std::int64_t given_now() { return now; }

class ActivityClocks : public ::testing::Test {
 protected:
  ActivityClocks() { now = 1000; }
  std::int64_t of(Activity activity) const { return clock_.times().nanoseconds[std::size_t(activity)]; }

  ActivityClock clock_{given_now};
  ActivityClockScope scope_{clock_};
};

TEST_F(ActivityClocks, AMomentCountsForTheInnermostScope) {
  clock_.begin();
  now += 1;
  {
    const ActivityScope kernels(Activity::kernels);
    now += 10;
    {
      const ActivityScope products(Activity::products);
      now += 100;
      const ActivityScope again(Activity::products);
      now += 1000;
    }
    now += 20;
  }
  now += 2;
  clock_.end();
  EXPECT_EQ(of(Activity::other), 3);
  EXPECT_EQ(of(Activity::kernels), 30);
  EXPECT_EQ(of(Activity::products), 1100);
  EXPECT_DOUBLE_EQ(clock_.times().seconds(), 1133e-9);
}

TEST_F(ActivityClocks, APeriodBeginsEmpty) {
  clock_.begin(4);
  now += 5;
  clock_.end();
  now += 100;
  clock_.begin(4);
  now += 7;
  clock_.end();
  EXPECT_DOUBLE_EQ(clock_.times().seconds(), 7e-9);
  ASSERT_EQ(clock_.slices().size(), 1u);
  EXPECT_EQ(clock_.slices()[0].begin, now - 7);
}

TEST_F(ActivityClocks, SlicesFillThePeriod) {
  clock_.begin(100);
  for (int i = 0; i < 5; ++i) {
    const ActivityScope call({Activity::gathers, "all_gather", "forward", i, 64});
    now += 3;
    const ActivityScope wait(Activity::ranks);
    now += 4;
  }
  clock_.end();
  std::int64_t end = 1000;
  for (const TimeSlice& slice : clock_.slices()) {
    EXPECT_EQ(slice.begin, end);
    end = slice.end;
  }
  EXPECT_EQ(end, now);
  EXPECT_EQ(clock_.times().bytes[std::size_t(Activity::gathers)], 5 * 64);
}

TEST_F(ActivityClocks, SlicesAreBounded) {
  clock_.begin(3);
  for (int i = 0; i < 5; ++i) {
    const ActivityScope kernels(Activity::kernels);
    now += 1;
  }
  clock_.end();
  EXPECT_EQ(clock_.slices().size(), 3u);
  EXPECT_EQ(clock_.left_out(), 11 - 3);
  EXPECT_EQ(of(Activity::kernels), 5);
}

TEST_F(ActivityClocks, TheBestRateIsThatOfALargeTransfer) {
  clock_.begin();
  const auto transfer = [](std::int64_t bytes, std::int64_t wait, std::int64_t time) {
    const ActivityScope call({Activity::sums, "all_reduce", nullptr, -1, bytes});
    {
      const ActivityScope ranks(Activity::ranks);
      now += wait;
    }
    now += time;
  };
  transfer(1 << 20, 500, 1 << 20);  // 1 GB/s, without the wait
  transfer(4 << 20, 0, 2 << 20);
  transfer(1000, 0, 1);  // too small to tell
  clock_.end();
  EXPECT_DOUBLE_EQ(clock_.times().best_rate[std::size_t(Activity::sums)], 2e9);
}

TEST_F(ActivityClocks, OtherThreadsDoNotCount) {
  clock_.begin();
  std::thread([] {
    const ActivityScope kernels(Activity::kernels);
    now += 5;
  }).join();
  clock_.end();
  EXPECT_EQ(of(Activity::kernels), 0);
}

}  // namespace activity_clock_test
}  // namespace zero
