#include "base/process/process_facts.h"

#include <gtest/gtest.h>

namespace zero {
namespace {

const auto early = std::chrono::steady_clock::now();

TEST(ProcessFacts, TheProcessIsOlderThanItsFirstLineOfCode) {
  const std::chrono::duration<double> tick(0.01), since = std::chrono::steady_clock::now() - early;
  const auto age = process_age();
  EXPECT_GE(age + tick, since);
  EXPECT_LT(age, since + std::chrono::hours(1));
}

TEST(ProcessFacts, TheProcessorHasOneName) { EXPECT_EQ(processor_name(), processor_name()); }

}  // namespace
}  // namespace zero
