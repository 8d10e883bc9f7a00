#include "comm/decorators/staged_communicator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/flight_recorder.h"
#include "comm/sim/sim_world.h"
#include "tests/unit/comm/conformance.h"

namespace zero {
namespace {

// The staging itself, with the CPU as the device.
class StagedConformance : public ::testing::TestWithParam<std::tuple<ConformanceCase, int>> {};

TEST_P(StagedConformance, holds) {
  const auto& [conformance, ranks] = GetParam();
  SimWorld({.ranks = ranks}).run([&](Communicator& c, int rank) {
    StagedCommunicator staged(c.duplicate(), at::Device(at::kCPU));
    conformance.body(staged);
  });
}

INSTANTIATE_TEST_SUITE_P(staged, StagedConformance,
                         ::testing::Combine(::testing::ValuesIn(conformance_cases()), ::testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_np" + std::to_string(std::get<1>(info.param));
                         });

TEST(FlightRecorder, names_the_rank_that_is_behind_and_its_last_call) {
  SimWorld({.ranks = 3}).run([](Communicator& c, int rank) {
    FlightRecorder recorder(c);
    CallRecord call;
    call.kind = CollectiveKind::reduce_scatter;
    call.numel = 64;
    recorder.record(call);
    c.barrier();
    EXPECT_EQ(recorder.who_is_behind(), "");
    call.kind = CollectiveKind::all_gather;
    c.barrier();
    if (rank != 1) recorder.record(call);
    c.barrier();
    const std::string behind = recorder.who_is_behind();
    if (rank == 1) {
      EXPECT_EQ(behind, "");
    } else {
      EXPECT_EQ(behind, "rank 1 is missing, its last call was #0 reduce_scatter of 64 byte (other)");
    }
  });
}

}  // namespace
}  // namespace zero
