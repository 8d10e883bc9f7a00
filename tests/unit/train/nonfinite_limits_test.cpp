// Runs with steps that are not finite, at their edges: the step to blame, how often a run skips and goes back, and the
// checkpoints. A run that was killed and resumed does the same again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/unit/train/object_of_line.h"
#include "tests/unit/train/trainer_bench.h"
#include "zero/checkpoint/checkpoint_folders.h"

namespace zero::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double nan_ = std::numeric_limits<double>::quiet_NaN();

class NonfiniteLimits : public ::testing::TestWithParam<int> {
 protected:
  void TearDown() override { std::filesystem::remove(metrics_); }

  /// Runs at the parameter's stage, with accumulation, on two ranks.
  BenchRun run(const std::string& choice, std::int64_t steps = 10) const {
    BenchRun run;
    run.ranks = 2;
    run.steps = steps;
    run.settings = {"zero.stage=" + std::to_string(GetParam()), "training.global_batch_size=4",
                    "training.on_nonfinite=" + choice, "checkpoint.interval=3"};
    return run;
  }
  static void plant_nan(BenchRun& run, std::initializer_list<std::int64_t> steps) {
    for (const std::int64_t step : steps) run.plants.push_back({row_of(run, step, 1, 0), 2, 0, with_last(nan_)});
  }
  /// The step's update makes a weight infinite: its tensor has a rate of its own, and no other gradient.
  static void plant_harm(BenchRun& run, std::int64_t step, int unit, const std::string& match,
                         std::function<at::Tensor(const at::Tensor&)> change) {
    for (const char* setting : {"optimizer.name=sgd", "optimizer.lr=0.01", "training.max_norm=0"})
      run.settings.emplace_back(setting);
    run.groups = "[[optimizer.group]]\nmatch = [\"" + match + "\"]\nlr = 1e6\n";
    const std::int64_t row = row_of(run, step, 0, 1);
    for (std::int64_t other = 0; other < 96; ++other)
      run.plants.push_back(
          {other, unit, 0, other == row ? change : [](const at::Tensor& g) { return at::zeros_like(g); }});
  }
  std::vector<nlohmann::json> metrics() const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(metrics_);
    for (std::string line; std::getline(file, line);) lines.push_back(testing::object_of_line(line));
    return lines;
  }

  std::string metrics_ = ::testing::TempDir() + "zero_nonfinite_metrics_" + std::to_string(::getpid());
};

TEST_P(NonfiniteLimits, AnUpdateThatBrokeTheWeightsIsUndone) {
  BenchRun run = this->run("rollback");
  plant_harm(run, 5, 3, "model.norm.weight", with_last(1e35));
  MemoryDisk disk("/disk");
  const BenchResult found = train(run, disk);
  ASSERT_EQ(found.error, "");
  EXPECT_THAT(found.passed->steps, ElementsAre(5));
  expect_equal(found.weights, train_without({5}, run));
}

TEST_P(NonfiniteLimits, OneBeforeACheckpointOrAtTheEndIsUndoneAndNeverSaved) {
  for (const std::int64_t step : {6, 10}) {
    BenchRun run = this->run("rollback");
    plant_harm(run, step, 3, "model.norm.weight", with_last(1e35));
    MemoryDisk disk("/disk");
    const BenchResult found = train(run, disk);
    ASSERT_EQ(found.error, "") << step;
    EXPECT_THAT(found.passed->steps, ElementsAre(step));
    expect_equal(found.weights, train_without({step}, run));
  }
}

// An embedding's row that no step reads. The states are checked when a checkpoint of step 6 is due, and the steps
// before it are done again.
TEST_P(NonfiniteLimits, AnUpdateWhoseHarmIsSeenLaterIsFoundWhenTheStepsAreDoneAgain) {
  BenchRun run = this->run("rollback");
  plant_harm(run, 4, 0, "model.embed_tokens.weight", with_last(-1e35));
  MemoryDisk disk("/disk");
  const BenchResult found = train(run, disk);
  ASSERT_EQ(found.error, "");
  EXPECT_THAT(found.passed->steps, ElementsAre(4, 6)) << "the last one is blamed first";
  expect_equal(found.weights, train_without({4, 6}, run));
}

TEST_P(NonfiniteLimits, MoreSkipsInARowThanAllowedEndTheRun) {
  BenchRun run = this->run("skip");
  run.settings.push_back("training.max_skipped_steps=2");
  plant_nan(run, {2, 3, 5, 6, 8});
  MemoryDisk disk("/disk");
  EXPECT_EQ(train(run, disk).error, "") << "never more than two in a row";
  plant_nan(run, {7});
  MemoryDisk other("/disk");
  const BenchResult found = train(run, other);
  EXPECT_THAT(found.error, HasSubstr("step 7: the gradients' norm is nan"));
  EXPECT_THAT(found.error,
              HasSubstr("The 2 steps before it were skipped: more in a row than training.max_skipped_steps"));
  EXPECT_THAT(found.checkpoints, ElementsAre(4)) << "what was due at step 3 follows step 4";
  run.resume = true;
  run.settings.back() = "training.max_skipped_steps=4";
  const BenchResult on = train(run, other);
  ASSERT_EQ(on.error, "");
  expect_equal(on.weights, train_without({2, 3, 5, 6, 7, 8}, run));
  EXPECT_THAT(on.passed->steps, ElementsAre(2, 3, 5, 6, 7, 8));
}

TEST_P(NonfiniteLimits, ARunWithoutATakenStepLeavesNoModel) {
  BenchRun run = this->run("skip", 3);
  plant_nan(run, {1, 2, 3});
  MemoryDisk disk("/disk");
  const BenchResult found = train(run, disk);
  EXPECT_THAT(found.error, HasSubstr("all 3 steps were skipped"));
}

TEST_P(NonfiniteLimits, MoreReturnsThanAllowedEndTheRunAndACheckpointBeyondAllowsMore) {
  BenchRun run = this->run("rollback", 14);
  run.settings.push_back("training.max_rollbacks=2");
  plant_nan(run, {5, 8, 11, 14});  // a checkpoint in between
  MemoryDisk disk("/disk");
  const BenchResult fine = train(run, disk);
  ASSERT_EQ(fine.error, "");
  EXPECT_THAT(fine.passed->steps, ElementsAre(5, 8, 11, 14));
  EXPECT_EQ(fine.passed->rollbacks, 0);
  BenchRun worse = this->run("rollback", 14);
  worse.settings.push_back("training.max_rollbacks=2");
  worse.settings[3] = "checkpoint.interval=4";
  plant_nan(worse, {5, 7, 8});
  MemoryDisk other("/disk");
  const BenchResult found = train(worse, other);
  EXPECT_THAT(found.error, HasSubstr("step 8: the gradients' norm is nan"));
  EXPECT_THAT(found.error, HasSubstr("it has done so 2 times (training.max_rollbacks) without a checkpoint beyond"));
  EXPECT_THAT(found.checkpoints, ElementsAre(4));
}

TEST_P(NonfiniteLimits, FailuresOneAfterTheOtherBlameTheUpdateBeforeThemToo) {
  BenchRun run = this->run("rollback");
  plant_nan(run, {5, 6});
  MemoryDisk disk("/disk");
  const BenchResult found = train(run, disk);
  ASSERT_EQ(found.error, "");
  EXPECT_THAT(found.passed->steps, ElementsAre(4, 5, 6));
  BenchRun plain = run;
  plain.plants.clear();
  expect_equal(found.weights, train_without({4, 5, 6}, plain));
}

TEST_P(NonfiniteLimits, WithoutACheckpointTheRunStops) {
  for (const bool emptied : {false, true}) {
    BenchRun run = this->run("rollback");
    plant_nan(run, {emptied ? 5 : 2});
    MemoryDisk disk("/disk");
    const std::int64_t row = row_of(run, 5, 0, 0);
    if (emptied)
      run.before_row = [&disk, row](std::int64_t now) {  // on rank 0
        if (now != row) return;
        const auto calls = disk.calls();
        CheckpointFolders(*calls, "/disk/run/checkpoints").remove("/disk/run/checkpoints/step-00000003");
      };
    const BenchResult found = train(run, disk);
    EXPECT_THAT(found.error, HasSubstr("The run does not go back: there is no checkpoint to go back to")) << emptied;
    EXPECT_THAT(found.checkpoints, IsEmpty());
  }
}

TEST_P(NonfiniteLimits, ADamagedCheckpointGivesWayToTheOneBefore) {
  BenchRun run = this->run("rollback");
  plant_nan(run, {8});
  const std::int64_t row = row_of(run, 8, 0, 0);
  MemoryDisk disk("/disk");
  run.before_row = [&disk, row, done = false](std::int64_t now) mutable {
    if (now == row && !std::exchange(done, true))
      disk.content("/disk/run/checkpoints/step-00000006/rank-00000.states").front() ^= std::byte{1};
  };
  const BenchResult found = train(run, disk);
  ASSERT_EQ(found.error, "");
  EXPECT_THAT(found.passed->steps, ElementsAre(8));
  expect_equal(found.weights, train_without({8}, this->run("rollback")));
}

TEST_P(NonfiniteLimits, ARunThatIsKilledAndGoesOnDoesTheSame) {
  BenchRun run = this->run("rollback");
  plant_nan(run, {5, 8});
  run.metrics = metrics_;
  MemoryDisk disk("/disk");
  const BenchResult whole = train(run, disk);
  ASSERT_EQ(whole.error, "");
  const auto lines = metrics();
  ASSERT_EQ(lines.size(), 10u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["step"], i + 1);
    EXPECT_EQ(lines[i]["skipped"], i + 1 < 5 ? 0 : i + 1 < 8 ? 1 : 2);
    EXPECT_EQ(lines[i]["loss"].is_null(), i + 1 == 5 || i + 1 == 8);
  }
  for (int killed_at = 7; killed_at < 30; killed_at += 2) {  // rows that a rank reads
    MemoryDisk other("/disk");
    BenchRun first = run;
    first.before_row = [killed_at](std::int64_t) {
      thread_local int read = 0;
      if (++read == killed_at) throw Error("killed");
    };
    EXPECT_EQ(train(first, other).error, killed_at <= 23 ? "killed" : "") << killed_at;
    BenchRun second = run;
    second.resume = true;
    const BenchResult found = train(second, other);
    ASSERT_EQ(found.error, "") << killed_at;
    expect_equal(found.weights, whole.weights);
    EXPECT_EQ(found.passed, whole.passed) << killed_at;
    EXPECT_EQ(metrics(), lines) << killed_at;
  }
}

TEST_P(NonfiniteLimits, AStepThatIsSkippedDefersItsCheckpointAndTheLastOneIsSaved) {
  BenchRun run = this->run("skip");
  plant_nan(run, {6, 9, 10});
  MemoryDisk disk("/disk");
  const BenchResult found = train(run, disk);
  ASSERT_EQ(found.error, "");
  EXPECT_THAT(found.checkpoints, ElementsAre(10, 7));
  EXPECT_EQ(found.passed->in_a_row, 2);
  expect_equal(found.weights, train_without({6, 9, 10}, run));
}

TEST_P(NonfiniteLimits, StatesThatAreNotFiniteAreNeverSaved) {
  for (const char* choice : {"stop", "skip"}) {
    BenchRun run = this->run(choice);
    run.settings.insert(run.settings.begin(), "training.max_skipped_steps=2");
    plant_harm(run, 6, 3, "model.norm.weight", with_last(1e35));  // as a checkpoint is due
    MemoryDisk disk("/disk");
    const BenchResult found = train(run, disk);
    EXPECT_THAT(found.error, HasSubstr("the states themselves are not finite in model.norm.weight (unit 3)")) << choice;
    EXPECT_THAT(found.checkpoints, ElementsAre(3)) << choice;
    BenchRun unsaved = this->run(choice);
    unsaved.settings.back() = "checkpoint.interval=0";
    unsaved.settings.emplace_back("training.max_skipped_steps=2");
    plant_harm(unsaved, 6, 3, "model.norm.weight", with_last(1e35));
    MemoryDisk other("/disk");
    const BenchResult lost = train(unsaved, other);
    EXPECT_THAT(lost.error, HasSubstr("The trained states are not kept: they are not finite"));
    EXPECT_THAT(lost.checkpoints, IsEmpty());
  }
  BenchRun last = this->run("skip");
  plant_harm(last, 10, 3, "model.norm.weight", with_last(1e35));
  MemoryDisk disk("/disk");
  const BenchResult found = train(last, disk);
  EXPECT_THAT(found.error, HasSubstr("after the last step the states are not finite in model.norm.weight"));
  EXPECT_THAT(found.checkpoints, ElementsAre(9, 6));
}

// Half precision: overflows of gradients are the loss scale's, whatever is chosen.
TEST_P(NonfiniteLimits, OverflowsThatALowerLossScaleMendsAreItsBusiness) {
  std::map<std::string, at::Tensor> weights;
  for (const char* choice : {"stop", "skip", "rollback"}) {
    BenchRun run = this->run(choice);
    run.settings.push_back("training.precision=fp16");
    plant_nan(run, {5});
    MemoryDisk disk("/disk");
    const BenchResult found = train(run, disk);
    ASSERT_EQ(found.error, "") << choice;
    EXPECT_THAT(found.passed->steps, IsEmpty()) << choice;
    if (weights.empty()) weights = found.weights;
    expect_equal(found.weights, weights);
  }
}

// Row by row of the data, through a base that holds an infinity.
TEST_P(NonfiniteLimits, ANonFiniteLossIsReportedWithRankAndRows) {
  for (const char* precision : {"fp32", "fp16"})
    for (const char* choice : {"stop", "skip", "rollback"}) {
      BenchRun run = this->run(choice);
      run.settings.push_back("lora.r=4");
      run.settings.push_back(std::string("training.precision=") + precision);
      const std::int64_t row = row_of(run, 5, 1, 1), second = row_of(run, 8, 0, 0);
      run.broken_rows = {row, second};
      run.metrics = metrics_;
      MemoryDisk disk("/disk");
      const BenchResult found = train(run, disk);
      if (choice == std::string("stop") && precision == std::string("fp32")) {
        EXPECT_THAT(found.error,
                    HasSubstr("step 5: the gradients' norm is nan; the loss of rank 1 is nan, in micro-batch "
                              "1 (row " +
                              std::to_string(row) + " of the training data)"));
        continue;
      }
      ASSERT_EQ(found.error, "") << precision << choice;
      if (choice == std::string("stop")) {
        EXPECT_LT(metrics().back()["loss_scale"], 65536.0) << "the loss scale alone decides";
        continue;
      }
      EXPECT_THAT(found.passed->steps, ElementsAre(5, 8));
      if (precision == std::string("fp16")) {
        EXPECT_EQ(metrics().back()["loss_scale"], 65536.0) << "a lower scale does not mend a loss";
      } else {
        expect_equal(found.weights, train_without({5, 8}, run));
      }
    }
}

// A run that goes back restores its loss scale: an overflow before the failure is met twice, and halves it once.
TEST_P(NonfiniteLimits, TheLossScaleGoesBackToo) {
  std::map<std::string, at::Tensor> weights;
  std::vector<nlohmann::json> lines;
  for (const char* choice : {"skip", "rollback"}) {
    BenchRun run = this->run(choice);
    run.settings.emplace_back("lora.r=4");
    run.settings.emplace_back("training.precision=fp16");
    plant_nan(run, {7});
    run.broken_rows = {row_of(run, 8, 0, 0)};
    run.metrics = metrics_;
    MemoryDisk disk("/disk");
    const BenchResult found = train(run, disk);
    ASSERT_EQ(found.error, "") << choice;
    EXPECT_THAT(found.passed->steps, ElementsAre(8));
    if (weights.empty()) {
      weights = found.weights;
      lines = metrics();
      EXPECT_LT(lines.back()["loss_scale"], lines[5]["loss_scale"]) << "an overflow after the checkpoint of step 6";
    }
    expect_equal(found.weights, weights);
    EXPECT_EQ(metrics().back(), lines.back());
  }
}

// A checkpoint of a run in another precision has none: what goes back to it has the first one again.
TEST_P(NonfiniteLimits, TheLossScaleGoesBackToWhereItBegan) {
  for (const char* choice : {"skip", "rollback"}) {
    MemoryDisk disk("/disk");
    BenchRun first = this->run(choice, 3);
    first.settings.emplace_back("lora.r=4");
    ASSERT_EQ(train(first, disk).error, "");
    BenchRun run = this->run(choice);
    run.settings.emplace_back("lora.r=4");
    run.settings.emplace_back("training.precision=fp16");
    plant_nan(run, {4});
    run.broken_rows = {row_of(run, 5, 0, 0)};
    run.metrics = metrics_;
    run.resume = true;
    const BenchResult found = train(run, disk);
    ASSERT_EQ(found.error, "") << choice;
    EXPECT_THAT(found.passed->steps, ElementsAre(5));
    EXPECT_EQ(metrics().back()["loss_scale"], 32768.0) << choice;
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, NonfiniteLimits, ::testing::Values(0, 2, 3));

}  // namespace
}  // namespace zero::testing
