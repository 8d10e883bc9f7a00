#include "zero/train/records/event_record.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace zero {
namespace {

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::strtol(hex.substr(i, 2).c_str(), nullptr, 16));
  return bytes;
}

// The records of TensorBoard 2.21's own messages and checksums.
TEST(EventRecord, HasTheBytesOfTensorBoardsOwnMessages) {
  EXPECT_EQ(version_record(1.5),
            bytes_of("1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c"));
  EXPECT_EQ(session_record(2.5, 300), bytes_of("100000000000000095fbfe1809000000000000044010ac023a0208017d05b37d"));
  EXPECT_EQ(
      summary_record(3.25, 7, {{"train/loss", 0.1}, {"validation/loss", 2.0}}),
      bytes_of("3800000000000000a3797d57090000000000000a4010072a2b0a110a0a747261696e2f6c6f737315cdcccc3d0a160a0f7661"
               "6c69646174696f6e2f6c6f73731500000040fbfce43f"));
  EXPECT_EQ(
      summary_record(3.25, 7, {{"train/loss", 0.1}}, {"samples", 2, {"a", "b", "c", ""}}),
      bytes_of(
          "5000000000000000940f9b82090000000000000a4010072a430a110a0a747261696e2f6c6f737315cdcccc3d0a2e0a0773616d70"
          "6c6573421708071208120208021202080242016142016242016342004a0a0a060a0474657874200231719cec"));
}

TEST(EventRecord, IsTakenOffUnlessItIsTornOrDamaged) {
  const std::string first = session_record(1, 3), second = summary_record(2, std::int64_t{1} << 40, {{"a", 1.0}});
  const std::string whole = first + second;
  std::string_view rest = whole;
  const auto session = take_record(rest), step = take_record(rest);
  ASSERT_TRUE(session && step);
  EXPECT_TRUE(session->begins_session);
  EXPECT_EQ(session->step, 3);
  EXPECT_FALSE(step->begins_session);
  EXPECT_EQ(step->step, std::int64_t{1} << 40);
  EXPECT_TRUE(rest.empty());
  EXPECT_FALSE(take_record(rest));
  for (std::size_t bytes = 0; bytes < first.size(); ++bytes) {
    std::string_view torn = std::string_view(first).substr(0, bytes);
    EXPECT_FALSE(take_record(torn)) << bytes;
    std::string damaged = first;
    damaged[bytes] = static_cast<char>(damaged[bytes] ^ 1);
    std::string_view seen = damaged;
    EXPECT_FALSE(take_record(seen)) << bytes;
  }
}

}  // namespace
}  // namespace zero
