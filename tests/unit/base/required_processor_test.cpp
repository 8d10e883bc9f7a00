#include "base/process/required_processor.h"

#include <gtest/gtest.h>

namespace zero {
namespace {

// Haswell's registers.
constexpr ProcessorWords haswell{0x7FFAFBFF, 0x000027AB, 0x00000021, 7};

TEST(RequiredProcessor, IsX86Level3) {
  EXPECT_EQ(missing_instructions(haswell), nullptr);
  EXPECT_STREQ(missing_instructions({}), "AVX");
}

TEST(RequiredProcessor, NamesWhatIsMissing) {
  ProcessorWords words = haswell;
  words.extended &= ~(1u << 5);  // Sandy Bridge
  EXPECT_STREQ(missing_instructions(words), "AVX2");
  words = haswell;
  words.features &= ~(1u << 12);
  EXPECT_STREQ(missing_instructions(words), "FMA");
  words = haswell;
  words.saved = 3;  // a system that saves SSE alone
  EXPECT_STREQ(missing_instructions(words), "AVX, because its system does not save the vectors");
}

}  // namespace
}  // namespace zero
