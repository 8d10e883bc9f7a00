#include "comm/sim/sim_world.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/unit/comm/conformance.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SimConformance : public ::testing::TestWithParam<std::tuple<ConformanceCase, int>> {};

TEST_P(SimConformance, holds) {
  const auto& body = std::get<0>(GetParam()).body;
  const int ranks = std::get<1>(GetParam());
  SimWorld world({.ranks = ranks, .seed = static_cast<std::uint64_t>(ranks)});
  world.run([&](Communicator& c, int) { body(c); });
}

INSTANTIATE_TEST_SUITE_P(sim, SimConformance,
                         ::testing::Combine(::testing::ValuesIn(conformance_cases()), ::testing::Values(1, 2, 3, 4, 6)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_np" + std::to_string(std::get<1>(info.param));
                         });

template <class Body>
std::string failure_of(SimOptions options, Body body) {
  try {
    SimWorld(std::move(options)).run(body);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST(SimWorld, reports_a_mismatch_on_every_rank) {
  std::vector<std::string> seen(3);
  const std::string message = failure_of({.ranks = 3}, [&](Communicator& c, int rank) {
    try {
      if (rank == 2)
        c.all_reduce(at::zeros({4}), {}, {Phase::optimizer, 1, 0});
      else
        c.barrier();
    } catch (const Error& e) {
      seen[rank] = e.what();
      throw;
    }
  });
  for (const std::string& text : seen)
    EXPECT_THAT(text, AllOf(HasSubstr("rank 0 called #0 barrier"),
                            HasSubstr("rank 2 called #0 all_reduce of 4 float (optimizer, unit 1, group 0)")));
  EXPECT_THAT(message, HasSubstr("mismatch"));
}

TEST(SimWorld, sees_other_numbers_types_and_roots) {
  const auto mismatch = ::testing::HasSubstr("mismatch");
  EXPECT_THAT(failure_of({.ranks = 2}, [](Communicator& c, int rank) { c.all_reduce(at::zeros({4 + rank})); }),
              mismatch);
  EXPECT_THAT(failure_of({.ranks = 2}, [](Communicator& c,
                                          int rank) { c.all_reduce(at::zeros({4}, rank ? at::kHalf : at::kFloat)); }),
              mismatch);
  EXPECT_THAT(failure_of({.ranks = 2}, [](Communicator& c, int rank) { c.broadcast(at::zeros({4}), rank); }), mismatch);
  EXPECT_THAT(failure_of({.ranks = 2}, [](Communicator& c,
                                          int rank) { rank ? c.recv(at::zeros({5}), 0) : c.send(at::zeros({4}), 1); }),
              mismatch);
}

TEST(SimWorld, sees_what_calls_are_for) {
  const CallTag own{Phase::forward, 2, 1};
  for (const CallTag other : {CallTag{Phase::save, 2, 1}, CallTag{Phase::forward, 3, 1}, CallTag{Phase::forward, 2, 0}})
    EXPECT_THAT(failure_of({.ranks = 2},
                           [&](Communicator& c, int rank) {
                             c.all_gather_into(at::zeros({8}), at::zeros({4}), rank ? other : own);
                           }),
                AllOf(HasSubstr("mismatch"), HasSubstr("(forward, unit 2, group 1)"),
                      HasSubstr("all ranks make the same calls in the same order")));
}

TEST(SimWorld, sees_other_counts_of_a_pair) {
  const std::string message = failure_of({.ranks = 3}, [](Communicator& c, int rank) {
    std::vector<std::int64_t> in_counts(3, 0), out_counts(3, 0);
    if (rank == 0) in_counts[2] = 4;
    if (rank == 2) out_counts[0] = 5;
    c.all_to_all(at::zeros({rank == 2 ? 5 : 0}), out_counts, at::zeros({rank == 0 ? 4 : 0}), in_counts);
  });
  EXPECT_THAT(message, AllOf(HasSubstr("rank 0 called #0 all_to_all of 4 float (other) with 4 for rank 2"),
                             HasSubstr("which expects 5 in #0 all_to_all of 0 float")));
}

TEST(SimWorld, a_failing_rank_wakes_the_others_and_is_the_cause) {
  const std::string message = failure_of({.ranks = 3}, [](Communicator& c, int rank) {
    c.barrier();
    if (rank == 1) throw InputError("no such file");
    c.barrier();
  });
  EXPECT_THAT(message, AllOf(HasSubstr("rank 1: no such file"), HasSubstr("rank 1 has failed after #0 barrier")));
  EXPECT_THROW(SimWorld(2).run([](Communicator&, int rank) {
    if (rank) throw InputError("bad");
  }),
               InputError);
}

TEST(SimWorld, names_a_rank_that_returned_early) {
  const std::string message = failure_of({.ranks = 2}, [](Communicator& c, int rank) {
    if (rank == 0) c.barrier();
  });
  EXPECT_THAT(message, HasSubstr("waits for rank 1, which has returned"));
}

TEST(SimWorld, carries_out_planned_faults) {
  const auto body = [](Communicator& c, int) {
    for (int i = 0; i < 5; ++i) c.barrier();
  };
  using Kind = SimFault::Kind;
  EXPECT_THAT(failure_of({.ranks = 2, .faults = {{1, 3, Kind::fail}}}, body),
              HasSubstr("rank 1: planned fault at #3 barrier"));
  EXPECT_THAT(failure_of({.ranks = 2, .faults = {{1, 2, Kind::leave}}}, body),
              HasSubstr("#2 barrier (other) waits for rank 1, which has left"));
  EXPECT_THAT(
      failure_of({.ranks = 3, .faults = {{2, 1, Kind::stall}}, .deadline = std::chrono::milliseconds(50)}, body),
      HasSubstr("deadline of 50 ms passed in #1 barrier (other): waiting for rank 2"));
}

TEST(SimWorld, logs_every_call_with_its_group) {
  SimWorld world(4);
  world.run([](Communicator& c, int rank) {
    auto pair = c.split({rank / 2 * 2, rank / 2 * 2 + 1});
    pair->barrier();
  });
  ASSERT_EQ(world.calls(3).size(), 2u);
  EXPECT_EQ(world.calls(3)[0].call.kind, CollectiveKind::split);
  EXPECT_EQ(world.calls(3)[1].group, (std::vector<int>{2, 3}));
}

TEST(SimWorld, other_schedules_give_the_same_bits) {
  at::Tensor first;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    at::Tensor result;
    SimWorld({.ranks = 4, .seed = seed}).run([&](Communicator& c, int rank) {
      at::Tensor x = sample(rank, 1003, at::kFloat);
      for (int i = 0; i < 20; ++i) {
        c.all_reduce(x);
        x.mul_(0.3);
      }
      if (rank == 0) result = x;
    });
    if (seed == 0) first = result;
    EXPECT_TRUE(at::equal(first, result));
  }
}

}  // namespace
}  // namespace zero
