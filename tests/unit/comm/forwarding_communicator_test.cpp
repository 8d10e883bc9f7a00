// A decorator that changes nothing is the communicator that it decorates: calls, memory and failures.
#include "comm/decorators/forwarding_communicator.h"

#include <gtest/gtest.h>

#include "comm/fake/fake_communicator.h"
#include "comm/sim/sim_world.h"
#include "tests/unit/comm/conformance.h"

namespace zero {
namespace {

class Plain final : public ForwardingCommunicator {
 public:
  explicit Plain(Communicator& inner) : ForwardingCommunicator(inner) {}
};

class ForwardingConformance : public ::testing::TestWithParam<std::tuple<ConformanceCase, int>> {};

TEST_P(ForwardingConformance, holds) {
  const auto& body = std::get<0>(GetParam()).body;
  SimWorld({.ranks = std::get<1>(GetParam())}).run([&](Communicator& c, int) {
    Plain plain(c);
    body(plain);
  });
}

INSTANTIATE_TEST_SUITE_P(forwarding, ForwardingConformance,
                         ::testing::Combine(::testing::ValuesIn(conformance_cases()), ::testing::Values(1, 3)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_np" + std::to_string(std::get<1>(info.param));
                         });

TEST(ForwardingCommunicator, HasTheInnerMemoryAndFailures) {
  FakeCommunicator inner(1, 4);
  Plain plain(inner);
  EXPECT_EQ(&plain.memory(), &inner.memory());
  EXPECT_EQ(&plain.failures(), &inner.failures());
  EXPECT_EQ(plain.rank(), 1);
  EXPECT_EQ(plain.size(), 4);
}

}  // namespace
}  // namespace zero
