#include "base/numbers/stored_fp32.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/numbers/half.h"

namespace zero {
namespace stored_fp32_test {

constexpr std::uint32_t largest = 0x7F7Fu, infinity = 0x7F80u;

float of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
bool is_nan(std::uint32_t bits) { return std::isnan(of_bits(bits)); }

/// Upper halves at the edges of exponents, of either sign.
std::vector<std::uint32_t> upper_halves() {
  std::vector<std::uint32_t> all;
  for (const std::uint32_t half : {0x0000u, 0x0001u, 0x007Fu, 0x0080u, 0x00FFu, 0x3F7Fu, 0x3F80u, 0x3F81u, 0x4000u,
                                   0x7EFFu, 0x7F00u, 0x7F7Eu, largest, infinity, 0x7F81u, 0x7FBFu, 0x7FC0u, 0x7FFFu})
    for (const std::uint32_t sign : {0u, 0x8000u}) all.push_back(sign | half);
  return all;
}

template <class Visit>
void for_each_number(const Visit& visit) {
  for (const std::uint32_t upper : upper_halves())
    for (std::uint32_t lower = 0; lower < 0x10000u; ++lower) visit(upper << 16 | lower);
}

TEST(SplitFp32, PartsGiveTheNumberToTheLastBit) {
  for_each_number([](std::uint32_t bits) {
    const std::uint32_t weight = split_bf16(bits), remainder = split_remainder(bits),
                        joined = joined_fp32(weight, remainder);
    ASSERT_LT(weight, 0x10000u);
    ASSERT_LT(remainder, 0x10000u);
    if (!is_nan(bits)) {
      ASSERT_EQ(joined, bits) << std::hex << bits;
    } else {
      ASSERT_TRUE(is_nan(weight << 16) && is_nan(joined)) << std::hex << bits;
      ASSERT_EQ(joined >> 31, bits >> 31);
    }
  });
}

TEST(SplitFp32, AWeightIsTheRoundedMasterButForTies) {
  int ties = 0;
  for_each_number([&](std::uint32_t bits) {
    const std::uint32_t rounded_to_even = rounded<Bf16>(of_bits(bits)).bits;
    const bool tie = (bits & 0xFFFFu) == 0x8000u && !is_nan(bits), odd_above = (bits >> 16) % 2 == 1;
    ASSERT_EQ(split_bf16(bits), tie && !odd_above ? rounded_to_even + 1 : rounded_to_even) << std::hex << bits;
    ties += tie;
  });
  EXPECT_GT(ties, 0);
}

TEST(SplitFp32, OverflowsAsRoundingDoes) {
  EXPECT_EQ(split_bf16(0x7F7FFFFFu), infinity);
  EXPECT_EQ(joined_fp32(infinity, split_remainder(0x7F7FFFFFu)), 0x7F7FFFFFu);
  EXPECT_EQ(joined_fp32(infinity, split_remainder(0x7F800000u)), 0x7F800000u);
}

// The share of draws that round up is the lower half's value: the mean is the number.
TEST(StochasticBf16, RoundsUpInProportionToTheDistance) {
  for (const std::uint32_t upper : {0x0000u, 0x0080u, 0x3F80u, 0x3FFFu, 0xBF80u, 0x7F7Eu})
    for (const std::uint32_t lower : {0u, 1u, 0x1234u, 0x7FFFu, 0x8000u, 0xFFFFu}) {
      std::uint32_t ups = 0;
      for (std::uint32_t draw = 0; draw < 0x10000u; ++draw) {
        const std::uint32_t rounded = stochastic_bf16(upper << 16 | lower, draw);
        ASSERT_TRUE(rounded == upper || rounded == upper + 1);
        ups += rounded - upper;
      }
      EXPECT_EQ(ups, lower) << std::hex << upper;
    }
}

TEST(StochasticBf16, KeepsWhatBf16HoldsAndNeverLeavesTheNumbers) {
  for (const std::uint32_t draw : {0u, 1u, 0x7FFFu, 0x8000u, 0xFFFFu}) {
    for (std::uint32_t upper = 0; upper < 0x10000u; ++upper) {
      const std::uint32_t kept = stochastic_bf16(upper << 16, draw);
      ASSERT_EQ(kept, is_nan(upper << 16) ? upper | 0x40u : upper);
    }
    for_each_number([draw](std::uint32_t bits) {
      const std::uint32_t rounded = stochastic_bf16(bits, draw);
      ASSERT_EQ(rounded >> 15, bits >> 31) << "the sign of " << std::hex << bits;
      ASSERT_EQ(is_nan(rounded << 16), is_nan(bits)) << std::hex << bits;
      ASSERT_EQ(std::isinf(of_bits(rounded << 16)), std::isinf(of_bits(bits))) << std::hex << bits;
    });
  }
}

}  // namespace stored_fp32_test
}  // namespace zero
