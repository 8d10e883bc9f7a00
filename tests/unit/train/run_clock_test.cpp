#include "zero/train/run_clock.h"

#include <gtest/gtest.h>

namespace zero {
namespace {

using std::chrono::seconds;
using Time = RunClock::Clock::time_point;

/// A clock that goes by hand, of a program that began ten seconds before it.
struct ByHand {
  explicit ByHand(const RunClockOptions& options) : clock(options, Time(seconds(90)), [this] { return now; }) {}
  void step(int takes) {
    now += seconds(takes);
    clock.stepped();
  }
  void save(int takes) {
    now += seconds(takes);
    clock.saved(seconds(takes));
  }
  Time now{seconds(100)};
  RunClock clock;
};

TEST(RunClock, AsksForNothingWithoutSettings) {
  ByHand run({});
  for (int i = 0; i < 100; ++i) run.step(100'000);
  EXPECT_FALSE(run.clock.save_is_due() || run.clock.end_is_due());
}

TEST(RunClock, SavesSoLongAfterTheLastTime) {
  ByHand run({.save_every = seconds(30)});
  run.step(20);
  EXPECT_FALSE(run.clock.save_is_due());
  run.step(10);
  EXPECT_TRUE(run.clock.save_is_due());
  run.save(7);
  EXPECT_FALSE(run.clock.save_is_due());
  run.step(29);
  EXPECT_FALSE(run.clock.save_is_due());
  run.step(1);
  EXPECT_TRUE(run.clock.save_is_due());
  EXPECT_FALSE(run.clock.end_is_due());
}

// 400 s: a reserve of 20 s, steps of 10 and a checkpoint of 30 seconds, of which the longer is taken once more.
TEST(RunClock, EndsWhileThereIsTimeForAStepAndACheckpoint) {
  ByHand run({.time_limit = seconds(400)});
  run.clock.stepped();
  run.step(10);  // 20 s since the program began
  run.save(30);
  while (!run.clock.end_is_due()) run.step(10);
  EXPECT_EQ(run.now - Time(seconds(90)), seconds(400 - 20 - 30 - 10 - 30));
}

TEST(RunClock, ACheckpointIsNoPartOfAStep) {
  ByHand run({.time_limit = seconds(1000)});
  run.clock.stepped();
  run.save(300);  // 310 s since the program began; a step of 300 s would leave no time
  run.step(10);
  EXPECT_FALSE(run.clock.end_is_due());
}

// 400 s: a reserve of 20 s, steps of 10 and a validation of 60 seconds in parts of 20.
TEST(RunClock, AValidationIsNoPartOfAStepAndIsReckonedWithWhereOneIsNext) {
  using Next = RunClock::Next;
  ByHand run({.time_limit = seconds(400)});
  run.clock.stepped();
  run.step(10);
  EXPECT_FALSE(run.clock.end_is_due(Next::validation));
  run.clock.validation_begins();
  for (int part = 0; part < 3; ++part) {
    run.now += seconds(20);
    part < 2 ? run.clock.validated_part() : run.clock.validated();
  }
  while (!run.clock.end_is_due(Next::validation)) run.step(10);
  EXPECT_EQ(run.now - Time(seconds(90)), seconds(400 - 20 - 10 - 60));
  while (!run.clock.end_is_due(Next::part_of_validation)) run.step(10);
  EXPECT_EQ(run.now - Time(seconds(90)), seconds(400 - 20 - 10 - 20));
  while (!run.clock.end_is_due()) run.step(10);
  EXPECT_EQ(run.now - Time(seconds(90)), seconds(400 - 20 - 10 - 10));
}

// A checkpoint that is being written comes to its end first, and another one follows.
TEST(RunClock, EndsWhileThereIsTimeForTheCheckpointThatIsBeingWritten) {
  ByHand run({.time_limit = seconds(400)});
  run.clock.stepped();
  run.save(1);  // the copy
  run.clock.saves_behind(true);
  for (int i = 0; i < 5; ++i) run.step(10);
  run.clock.saves_behind(false, seconds(50));
  for (int i = 0; i < 16; ++i) run.step(10);
  ASSERT_EQ(run.now - Time(seconds(90)), seconds(221));
  EXPECT_FALSE(run.clock.end_is_due());
  run.save(1);
  EXPECT_FALSE(run.clock.end_is_due());
  run.clock.saves_behind(true);
  EXPECT_TRUE(run.clock.end_is_due());
}

// Before one has ended its length is what it has taken already.
TEST(RunClock, ReckonsWithTheFirstCheckpointAsLongAsItHasTaken) {
  ByHand run({.time_limit = seconds(400)});
  run.clock.stepped();
  run.save(0);
  run.clock.saves_behind(true);
  while (!run.clock.end_is_due()) {
    run.step(10);
    run.clock.saves_behind(true, run.now - Time(seconds(100)));
  }
  EXPECT_EQ(run.now - Time(seconds(90)), seconds(100));  // 90 s of it: thrice in what follows
}

// That one has been written is seen when steps end, which may be much later.
TEST(RunClock, ACheckpointThatIsWrittenWithinAStepIsNoLongerThanItTook) {
  ByHand run({.time_limit = seconds(4000)});
  run.clock.stepped();
  run.save(0);
  run.clock.saves_behind(true);
  run.step(300);
  run.clock.saves_behind(true, seconds(1));
  run.step(300);
  run.clock.saves_behind(false, seconds(2));
  while (!run.clock.end_is_due()) run.step(300);
  EXPECT_EQ(run.now - Time(seconds(90)), seconds(10 + 12 * 300));  // the rest: a step and 90 s
}

// 400 s: a reserve of 20 s and steps of 10. A copy that was taken is no checkpoint that was written.
TEST(RunClock, ReckonsWithAnAssumedCheckpointUntilOneWasWritten) {
  ByHand run({.time_limit = seconds(400), .assumed_save = seconds(40)});
  run.clock.stepped();
  run.save(1);
  run.clock.saves_behind(true);
  for (int i = 0; i < 23; ++i) run.step(10);
  EXPECT_FALSE(run.clock.end_is_due());
  run.step(10);  // 251 s since the program began: 10 + 40 + 40 + 40 + 20 follow
  EXPECT_TRUE(run.clock.end_is_due());
  run.clock.saves_behind(false, seconds(2));  // given up
  for (int i = 0; i < 3; ++i) run.step(10);
  EXPECT_FALSE(run.clock.end_is_due());
  run.step(10);  // 291 s: 10 + 40 + 40 + 20 follow
  EXPECT_TRUE(run.clock.end_is_due());
  run.clock.written();
  EXPECT_FALSE(run.clock.end_is_due());
  while (!run.clock.end_is_due()) run.step(10);
  EXPECT_EQ(run.now - Time(seconds(90)), seconds(361));
}

TEST(RunClock, AssumesSlowDisksWithinATenthOfTheLimit) {
  Config config;
  EXPECT_EQ(clock_options_of(config, 1'000'000'000).assumed_save, seconds(0));
  config.job.time_limit = "5:00";
  EXPECT_EQ(clock_options_of(config, 1'000'000'000).assumed_save, seconds(10));
  EXPECT_EQ(clock_options_of(config, 100'000'000'000).assumed_save, seconds(30));
}

TEST(RunClock, ALimitThatIsOverEndsTheRunAfterItsFirstStep) {
  ByHand run({.time_limit = seconds(5)});
  EXPECT_TRUE(run.clock.end_is_due());
}

}  // namespace
}  // namespace zero
