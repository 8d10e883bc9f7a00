// Runs with steps that are not finite: what training.on_nonfinite says is done to the bit, on all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/unit/train/trainer_bench.h"

namespace zero::testing {
namespace nonfinite_run_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double nan_ = std::numeric_limits<double>::quiet_NaN(), inf_ = std::numeric_limits<double>::infinity();

struct Layout {
  std::string name;
  int ranks;
  std::vector<std::string> settings;
  int micro_batches = 1;
};

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const int stage : {0, 1, 2, 3})
    for (const int ranks : {1, 2, 4})
      all.push_back({"stage" + std::to_string(stage) + "x" + std::to_string(ranks),
                     ranks,
                     {"zero.stage=" + std::to_string(stage), "training.global_batch_size=4"},
                     4 / ranks});
  for (const int stage : {1, 2, 3})
    all.push_back({"hybrid" + std::to_string(stage),
                   4,
                   {"zero.stage=" + std::to_string(stage), "zero.shard_degree=2", "training.global_batch_size=8"},
                   2});
  for (const int stage : {0, 2, 3})
    all.push_back({"lora" + std::to_string(stage),
                   2,
                   {"zero.stage=" + std::to_string(stage), "lora.r=4", "lora.target_modules=[\"all-linear\"]",
                    "lora.lora_dropout=0.1"},
                   1});
  all.push_back({"bf16", 2, {"zero.stage=3", "training.precision=bf16"}});
  all.push_back({"prodigy", 2, {"zero.stage=2", "optimizer.name=prodigy", "optimizer.lr=1.0"}});
  all.push_back({"muon", 2, {"zero.stage=3", "optimizer.name=muon"}});
  all.push_back({"adamw8bit", 2, {"zero.stage=1", "optimizer.name=adamw8bit"}});
  all.push_back({"adafactor", 2, {"zero.stage=3", "optimizer.name=adafactor"}});
  all.push_back({"nvme", 2, {"zero.stage=3", "offload.optimizer=nvme", "offload.parameters=nvme"}});
  return all;
}

class NonfiniteRuns : public ::testing::TestWithParam<Layout> {
 protected:
  void SetUp() override {
    const Layout& layout = GetParam();
    run_.ranks = layout.ranks;
    run_.settings = layout.settings;
    run_.settings.push_back("checkpoint.interval=3");
    run_.settings.push_back("offload.nvme_dir=" + folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  BenchRun with(const std::string& choice) const {
    BenchRun run = run_;
    run.settings.push_back("training.on_nonfinite=" + choice);
    return run;
  }
  /// In a step, at the last rank's last micro-batch, in a projection of the first block.
  Plant plant(std::int64_t step, double value) const {
    const Layout& layout = GetParam();
    return {row_of(run_, step, layout.ranks - 1, layout.micro_batches - 1), 1, 1, with_last(value)};
  }

  std::string folder_ = ::testing::TempDir() + "zero_nonfinite_" + std::to_string(::getpid());
  BenchRun run_;
};

TEST_P(NonfiniteRuns, AStepThatIsSkippedIsAsIfItWereNotTaken) {
  BenchRun run = with("skip");
  for (const std::int64_t step : {1, 4, 8}) run.plants.push_back(plant(step, step == 4 ? inf_ : nan_));
  MemoryDisk disk("/disk");
  const BenchResult found = train(run, disk);
  ASSERT_EQ(found.error, "");
  expect_equal(found.weights, train_without({1, 4, 8}, run));
  EXPECT_THAT(found.checkpoints, ElementsAre(8, 6));
  EXPECT_THAT(found.passed->steps, ElementsAre(1, 4, 8));
}

TEST_P(NonfiniteRuns, ARunThatGoesBackIsAsIfItHadPassedOverTheStep) {
  BenchRun skips = with("skip"), run = with("rollback");
  skips.plants = run.plants = {plant(5, nan_), plant(8, inf_)};
  MemoryDisk disk("/disk"), other("/disk");
  const BenchResult found = train(run, disk), skipped = train(skips, other);
  ASSERT_EQ(found.error, "");
  expect_equal(found.weights, skipped.weights);
  expect_equal(found.weights, train_without({5, 8}, run));
  EXPECT_THAT(found.passed->steps, ElementsAre(5, 8));
}

TEST_P(NonfiniteRuns, AllRanksStopWithOneMessageThatNamesTheTensor) {
  BenchRun run = with("stop");
  run.plants = {plant(5, nan_)};
  MemoryDisk disk("/disk");
  const BenchResult found = train(run, disk);
  EXPECT_THAT(found.error,
              HasSubstr("step 5: the gradients' norm is nan; every rank's loss is finite; gradients are not "
                        "finite in "));
  EXPECT_THAT(found.error, HasSubstr("model.layers.0."));
  EXPECT_THAT(found.error, HasSubstr("(unit 1). Nothing was updated. "));
  EXPECT_THAT(found.checkpoints, ElementsAre(3));
}

INSTANTIATE_TEST_SUITE_P(Layouts, NonfiniteRuns, ::testing::ValuesIn(layouts()),
                         [](const auto& info) { return info.param.name; });

}  // namespace nonfinite_run_test
}  // namespace zero::testing
