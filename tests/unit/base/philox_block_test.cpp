// A GPU's thread draws the blocks that a CPU draws eight at a time.
#include "base/philox_block.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace zero {
namespace {

TEST(PhiloxBlock, IsTheReferencesForAllOnes) {
  constexpr PhiloxBlock block = philox_block(~0ull, ~0ull, ~0ull);  // Random123's known answers
  EXPECT_EQ(block.word[0], 0x408F276Du);
  EXPECT_EQ(block.word[1], 0x41C83B0Eu);
  EXPECT_EQ(block.word[2], 0xA20BC7C6u);
  EXPECT_EQ(block.word[3], 0x6D5451FDu);
}

TEST(PhiloxBlock, IsThatOfItsGroup) {
  const PhiloxKey key{0x0123456789ABCDEFull, 0xFEDCBA9876543210ull};
  for (const std::uint64_t group : {0ull, 1ull, 0x1FFFFFFFull, 0x123456789ull}) {
    const auto words = philox_group(key, group);
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const PhiloxBlock block = philox_block(key.key, key.stream, group * 8 + lane);
      for (std::size_t w = 0; w < 4; ++w) EXPECT_EQ(block.word[w], words[w][lane]) << group << ", " << lane;
    }
  }
}

}  // namespace
}  // namespace zero
