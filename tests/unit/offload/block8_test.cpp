#include "offload/quantized/block8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace zero {
namespace {

TEST(Block8, CodesAreThePublishedOnes) {
  // A few of bitsandbytes.functional.create_dynamic_map(), fp32.
  const auto& codes = signed_map().codes();
  EXPECT_TRUE(std::is_sorted(codes.begin(), codes.end()));
  EXPECT_EQ(codes.back(), 1.0F);
  EXPECT_EQ(codes[127], 0.0F);
  EXPECT_FLOAT_EQ(codes.front(), -0.99296875F);
  EXPECT_FLOAT_EQ(codes[128], 5.5e-7F);
  EXPECT_FLOAT_EQ(codes[129], 3.25e-6F);
  const auto& positive = unsigned_map().codes();
  EXPECT_TRUE(std::is_sorted(positive.begin(), positive.end()));
  EXPECT_EQ(positive.front(), 0.0F);
  EXPECT_FLOAT_EQ(positive[1], 3.25e-7F);
  EXPECT_FLOAT_EQ(positive[254], 0.996484375F);
}

TEST(Block8, NearestIsNearestForEveryNumber) {
  for (const Block8Map* map : {&signed_map(), &unsigned_map()}) {
    const auto check = [&](float x) {
      const auto expected =
          std::lower_bound(map->midpoints().begin(), map->midpoints().end(), x) - map->midpoints().begin();
      ASSERT_EQ(int(map->nearest(x)), int(expected)) << x;
    };
    for (const float middle : map->midpoints())
      for (const float x : {middle, std::nextafter(middle, 2.0F), std::nextafter(middle, -2.0F)}) check(x);
    for (const float code : map->codes()) check(code);
    // Every 97th fp32 number of [0, 1], and its opposite.
    for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(1.0F); bits += 97) {
      check(std::bit_cast<float>(bits));
      check(-std::bit_cast<float>(bits));
    }
  }
}

}  // namespace
}  // namespace zero
