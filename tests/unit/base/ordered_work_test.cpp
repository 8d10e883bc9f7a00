#include "base/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace zero {
namespace {

CoreSet three() {
  CoreSet cores;
  cores[0] = cores[1] = cores[2] = true;
  return cores;
}

TEST(OrderedWork, ResultsComeInOrderAndFewJobsAreUnderWay) {
  int next = 0;
  std::atomic<int> running{0}, most{0};
  std::vector<int> taken;
  work_in_order(
      three(), [&]() -> std::optional<int> { return next < 50 ? std::optional(next++) : std::nullopt; },
      [&](int& job) {
        const int now = ++running;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(std::chrono::microseconds(job % 7 * 200));
        --running;
        return job * job;
      },
      [&](int result) { taken.push_back(result); });
  ASSERT_EQ(taken.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(taken[static_cast<std::size_t>(i)], i * i);
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 4);
}

TEST(OrderedWork, TheFirstFailureInOrderIsThrown) {
  int next = 0, taken = 0;
  const auto work = [](int& job) {
    if (job == 5) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (job >= 5) throw std::runtime_error(std::to_string(job));
    return job;
  };
  try {
    work_in_order(
        three(), [&]() -> std::optional<int> { return next++; }, work, [&](int) { ++taken; });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "5");
  }
  EXPECT_EQ(taken, 5);
  EXPECT_LE(next, 12);
}

TEST(OrderedWork, AJobsErrorPrecedesAFailureToMakeTheNextJob) {
  int next = 0, taken = 0;
  const auto jobs = [&]() -> std::optional<int> {
    if (next == 3) throw std::runtime_error("there is no fourth");
    return next++;
  };
  const auto fails_at = [&](int bad) {
    next = taken = 0;
    try {
      work_in_order(
          three(), jobs,
          [&](int& job) {
            if (job == bad) throw std::runtime_error("job " + std::to_string(job));
            return job;
          },
          [&](int) { ++taken; });
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(fails_at(2), "job 2");
  EXPECT_EQ(taken, 2);
  EXPECT_EQ(fails_at(9), "there is no fourth");
  EXPECT_EQ(taken, 3);
}

}  // namespace
}  // namespace zero
