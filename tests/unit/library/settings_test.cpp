// Settings are read as they stand, or refused.
#include "zero/library/include/zero/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

TEST(Settings, IntegersAreThoseOf64Bits) {
  const TemporaryFolder folder;
  const Settings settings(folder.write(
      "settings.json", R"({"most": 9223372036854775807, "least": -9223372036854775808, "more": 9223372036854775808})"));
  EXPECT_EQ(settings.integer("most"), INT64_MAX);
  EXPECT_EQ(settings.integer("least"), INT64_MIN);
  EXPECT_THAT(message_of<InputError>([&] { (void)settings.integer("more"); }),
              ::testing::HasSubstr("\"more\" must be an integer"));
}

}  // namespace
}  // namespace zero
