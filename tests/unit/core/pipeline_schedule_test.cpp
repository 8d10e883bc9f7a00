// Schedules of a pipeline, in simulated time, and how units are dealt out to its stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "zero/core/pipeline/schedule.h"
#include "zero/core/pipeline/unit_deal.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// One unit a run, on the stages in turn; with tied ends one more on the first.
std::vector<UnitRun> runs_of(int stages, int chunks, bool tied = false) {
  std::vector<UnitRun> runs;
  for (int r = 0; r < stages * chunks; ++r) runs.push_back({r, r + 1, r % stages});
  if (tied) runs.push_back({int(runs.size()), int(runs.size()) + 1, 0});
  return runs;
}

PipelineTimeline timeline(ScheduleKind kind, int stages, int chunks, int micro_batches) {
  const std::vector<UnitRun> runs = runs_of(stages, chunks);
  const RunCosts costs(runs.size(), 1.0 / chunks);
  return timeline_of(make_schedule(kind, runs, costs, stages, micro_batches), runs, costs, micro_batches);
}

TEST(PipelineSchedule, WaitsAsTheFormulasSay) {
  for (const int stages : {2, 3, 4, 8})
    for (const int micro_batches : {1, 2, 3, 5, 8, 16}) {
      SCOPED_TRACE(::testing::Message() << stages << " stages, " << micro_batches << " micro-batches");
      const double formula = double(stages - 1) / micro_batches;
      EXPECT_NEAR(timeline(ScheduleKind::gpipe, stages, 1, micro_batches).bubble(), formula, 1e-12);
      EXPECT_NEAR(timeline(ScheduleKind::one_f_one_b, stages, 1, micro_batches).bubble(), formula, 1e-12);
      for (const int chunks : {2, 3})
        if (micro_batches % stages == 0) {
          EXPECT_NEAR(timeline(ScheduleKind::interleaved, stages, chunks, micro_batches).bubble(), formula / chunks,
                      1e-12);
        }
    }
}

TEST(PipelineSchedule, KeepsFewMicroBatchesAlive) {
  EXPECT_THAT(timeline(ScheduleKind::one_f_one_b, 4, 1, 16).most_live, ElementsAre(4, 3, 2, 1));
  EXPECT_EQ(timeline(ScheduleKind::gpipe, 4, 1, 16).most_live.front(), 16);
  EXPECT_THAT(timeline(ScheduleKind::interleaved, 4, 2, 16).most_live, ElementsAre(11, 9, 7, 5));
}

// The head on the first stage costs more micro-batches alive, and little time.
TEST(PipelineSchedule, TakesTiedEnds) {
  for (const int stages : {2, 3, 4, 8})
    for (const double head : {0.1, 0.3, 0.5, 0.7, 0.9})
      for (const int micro_batches : {4, 16, 32}) {
        SCOPED_TRACE(::testing::Message() << stages << " stages, head " << head << ", " << micro_batches);
        const std::vector<UnitRun> runs = runs_of(stages, 1, /*tied=*/true);
        RunCosts costs(runs.size(), 1);
        costs.front() = 1 - head;
        costs.back() = head;
        const auto timeline = [&](ScheduleKind kind) {
          return timeline_of(make_schedule(kind, runs, costs, stages, micro_batches), runs, costs, micro_batches);
        };
        const PipelineTimeline found = timeline(ScheduleKind::one_f_one_b), gpipe = timeline(ScheduleKind::gpipe);
        EXPECT_LT(found.bubble(), gpipe.bubble() + 0.35 * stages / micro_batches);
        EXPECT_LE(found.most_live.front(), 4 * stages + 1);
      }
  const std::vector<UnitRun> runs = runs_of(2, 2, true);
  EXPECT_THAT(message_of<InputError>([&] { make_schedule(ScheduleKind::interleaved, runs, RunCosts(5, 1), 2, 4); }),
              AllOf(HasSubstr("tied embeddings"), HasSubstr("1f1b")));
}

// The limits of micro-batches in memory do not grow with the step.
TEST(PipelineSchedule, KeepsHardlyMoreAliveInALongStepThanInOneThatFillsIt) {
  for (const int stages : {2, 3, 4})
    for (const int blocks : {1, 2, 3})
      for (const double head : {0.2, 0.5, 1.0, 3.5}) {
        const std::vector<UnitRun> runs = runs_of(stages, 1, true);
        RunCosts costs(runs.size(), blocks);
        costs.back() = head;
        const auto most_live = [&](int micro_batches) {
          return timeline_of(make_schedule(ScheduleKind::one_f_one_b, runs, costs, stages, micro_batches), runs, costs,
                             micro_batches)
              .most_live;
        };
        const std::vector<int> filled = most_live(pipeline_fill(stages, 1));
        for (const int micro_batches : {5 * stages, 40, 100, 400}) {
          const std::vector<int> found = most_live(micro_batches);
          for (int stage = 0; stage < stages; ++stage)
            EXPECT_LE(found[std::size_t(stage)], filled[std::size_t(stage)] + 1)
                << stages << " " << blocks << " " << head << " " << micro_batches;
        }
      }
}

TEST(PipelineSchedule, IsProvenBeforeItRuns) {
  const std::vector<UnitRun> runs = runs_of(2, 1);
  const RunCosts costs(2, 1);
  const PipelineSchedule good = make_schedule(ScheduleKind::one_f_one_b, runs, costs, 2, 2);
  const auto fault_of = [&](const auto& change) {
    PipelineSchedule bad = good;
    change(bad.stages);
    return message_of<Error>([&] { timeline_of(bad, runs, costs, 2); });
  };
  EXPECT_NO_THROW(timeline_of(good, runs, costs, 2));
  // The first stage's backward needs the second's, which needs a later forward of the first.
  EXPECT_THAT(fault_of([](auto& stages) {
                stages[0] = {{false, 0, 0}, {true, 0, 0}, {false, 0, 1}, {true, 0, 1}};
                stages[1] = {{false, 1, 0}, {false, 1, 1}, {true, 1, 0}, {true, 1, 1}};
              }),
              HasSubstr("waits for ever before"));
  EXPECT_THAT(fault_of([](auto& stages) { std::swap(stages[0].front(), stages[0].at(1)); }), HasSubstr("out of order"));
  EXPECT_THAT(fault_of([](auto& stages) { stages[1].pop_back(); }), HasSubstr("waits for ever before"));
  EXPECT_THAT(fault_of([](auto& stages) { stages[0].pop_back(); }), HasSubstr("do not pass all runs"));
  EXPECT_THAT(fault_of([](auto& stages) { stages[0].back().run = 1; }), HasSubstr("another's"));
  EXPECT_THAT(fault_of([](auto& stages) { stages[0].push_back({false, 0, 2}); }), HasSubstr("out of order"));
}

std::vector<int> ends_of(const std::vector<UnitRun>& runs) {
  std::vector<int> ends;
  for (const UnitRun& run : runs) ends.push_back(run.end);
  return ends;
}

TEST(UnitDeal, BalancesTheStages) {
  // 8 equal blocks and a head as heavy as two of them
  const std::vector<std::int64_t> costs{0, 1, 1, 1, 1, 1, 1, 1, 1, 2};
  EXPECT_THAT(ends_of(deal_units(costs, false, 2, 1)), ElementsAre(6, 10));
  EXPECT_THAT(ends_of(deal_units(costs, false, 5, 1)), ElementsAre(3, 5, 7, 9, 10));
  // the head lies on the first stage
  const std::vector<UnitRun> tied = deal_units(costs, true, 2, 1);
  EXPECT_THAT(ends_of(tied), ElementsAre(4, 9, 10));
  EXPECT_EQ(tied.back(), (UnitRun{9, 10, 0}));
  const std::vector<UnitRun> chunks = deal_units(costs, false, 2, 2);
  ASSERT_EQ(chunks.size(), 4u);
  for (int r = 0; r < 4; ++r) EXPECT_EQ(chunks[std::size_t(r)].stage, r % 2);
  EXPECT_THAT(message_of<InputError>([&] { deal_units(costs, false, 3, 3); }),
              HasSubstr("3 stages x 3 chunks are more than the 8 blocks"));
}

}  // namespace
}  // namespace zero
