// A rank alone keeps the contract of every backend.
#include "comm/self_communicator.h"

#include <gtest/gtest.h>

#include "comm/fake/fake_communicator.h"
#include "tests/unit/comm/conformance.h"

namespace zero {
namespace {

class SelfConformance : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(SelfConformance, holds) {
  SelfCommunicator alone;
  GetParam().body(alone);
}

TEST_P(SelfConformance, holds_among_others) {
  FakeCommunicator others(3, 8);
  SelfCommunicator alone(others);
  GetParam().body(alone);
}

INSTANTIATE_TEST_SUITE_P(lone, SelfConformance, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace zero
