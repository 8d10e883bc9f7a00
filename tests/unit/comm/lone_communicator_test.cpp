// A rank alone keeps the contract of every backend.
#include "comm/lone_communicator.h"

#include <gtest/gtest.h>

#include "comm/fake/fake_communicator.h"
#include "tests/unit/comm/conformance.h"

namespace zero {
namespace {

class LoneConformance : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(LoneConformance, holds) {
  LoneCommunicator alone;
  GetParam().body(alone);
}

TEST_P(LoneConformance, holds_among_others) {
  FakeCommunicator others(3, 8);
  LoneCommunicator alone(others);
  GetParam().body(alone);
}

INSTANTIATE_TEST_SUITE_P(lone, LoneConformance, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace zero
