#include "base/time_span.h"

#include <gtest/gtest.h>

namespace zero {
namespace {

TEST(TimeSpan, IsReadAsSlurmWritesIt) {
  const std::pair<const char*, std::int64_t> spans[] = {
      {"00:00", 0},        {"05:30", 330},       {"90:00", 5400},       {"1:00:00", 3600},
      {"23:59:59", 86399}, {"48:00:00", 172800}, {"1-00:00:00", 86400}, {"2-03:04:05", 183845}};
  for (const auto& [text, seconds] : spans) EXPECT_EQ(time_span_of(text), std::chrono::seconds(seconds)) << text;
}

TEST(TimeSpan, OtherFormatsAreRefused) {
  for (const char* text : {"", "5", ":05", "5:", "1:60", "1:60:00", "1-24:00:00", "1-1:00:00", "1-00:00", "-1:00",
                           "1:00:00 ", "1:0:0", "2 h", "1234567:00", "1.5:00", "0x1:00"})
    EXPECT_FALSE(time_span_of(text)) << text;
}

}  // namespace
}  // namespace zero
