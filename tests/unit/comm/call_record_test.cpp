#include "comm/call_record.h"

#include <gtest/gtest.h>

#include <string>

namespace zero {
namespace {

CallRecord call_of_unit(const std::string& name) {
  CallRecord call;
  call.kind = CollectiveKind::all_gather;
  call.numel = 8;
  call.type = at::kFloat;
  call.tag = {.phase = Phase::backward, .unit = 3};
  call.name = UnitName(name);
  return call;
}

TEST(CallRecord, SaysTheNameOfItsUnit) {
  EXPECT_EQ(call_of_unit("encoder.layers.3").describe(), "#0 all_gather of 8 float (backward of encoder.layers.3)");
}

TEST(CallRecord, SaysTheNumberOfAUnitWithoutAName) {
  EXPECT_EQ(call_of_unit("").describe(), "#0 all_gather of 8 float (backward, unit 3)");
}

TEST(CallRecord, KeepsTheEndOfALongName) {
  const std::string fits(79, 'a'), long_name = std::string(100, 'b') + ".layers.31.attention";
  EXPECT_EQ(call_of_unit(fits).name.view(), fits);
  const std::string kept(call_of_unit(long_name).name.view());
  EXPECT_EQ(kept.size(), 79u);
  EXPECT_EQ(kept, "..." + long_name.substr(long_name.size() - 76));
}

TEST(CallRecord, IsTheSameCallUnderAnotherName) { EXPECT_TRUE(is_same_call(call_of_unit("a"), call_of_unit("b"))); }

}  // namespace
}  // namespace zero
