// The verdict on a run: what fits, what does not, and what it names instead.
#include "zero/train/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/error.h"
#include "zero/train/nearest_fit.h"
#include "zero/train/setup.h"

namespace zero {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t gib = std::int64_t{1} << 30;

Config config_of(const std::string& more = "", const std::vector<std::string>& overrides = {}) {
  return parse_config("[job]\noutput_dir = \"out\"\n[model]\npreset = \"tinyllama-1.1b\"\n[data]\ntrain = [\"a.bin\"]\n[training]\nsteps = 1\nseq_len = 512\n" + more, "run.toml", overrides);
}

NodeBudget budget_of(std::int64_t bytes) {
  NodeBudget budget;
  budget.ranks_here = 2;
  budget.memory = {bytes, "MemAvailable"};
  budget.process = gib / 10;
  return budget;
}

Verdict judge(const Config& config, const NodeBudget& budget) {
  return judge_memory(config, BatchArithmetic::of(config, 2), make_llama(model_config_of(config)), budget);
}

// 1.1 billion parameters, 16 bytes each on both ranks: 33 GiB at stage 0, 16.4 at stage 3.
TEST(Verdict, RefusesWhatDoesNotFitAndNamesTheNearestThatDoes) {
  const Config config = config_of("[zero]\nstage = 0\n");
  const NodeBudget budget = budget_of(21 * gib);
  const Verdict verdict = judge(config, budget);
  EXPECT_FALSE(verdict.fits);
  EXPECT_EQ(verdict.nearest, "zero.stage = 2");
  EXPECT_THAT(verdict.table, HasSubstr("does NOT fit"));
  try {
    require_fit(config, verdict, budget);
    FAIL() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("run.toml:11: [zero] stage = 0: does not fit"));
    EXPECT_THAT(error.what(), HasSubstr("this fits: zero.stage = 2"));
  }
}

TEST(Verdict, LetsPassWhatFits) {
  const Config config = config_of();
  const Verdict verdict = judge(config, budget_of(24 * gib));
  EXPECT_TRUE(verdict.fits) << verdict.table;
  EXPECT_NO_THROW(require_fit(config, verdict, budget_of(24 * gib)));
  EXPECT_THAT(verdict.table, HasSubstr("it fits"));
  EXPECT_GT(verdict.node_peak, 16 * gib);
}

TEST(Verdict, NamesTheDiskWhereMemoryIsShort) {
  EXPECT_EQ(judge(config_of(), budget_of(9 * gib)).nearest, "offload.optimizer = \"nvme\", offload.nvme_dir = \"a folder on a local disk\"");
  EXPECT_THAT(judge(config_of("[zero]\nstage = 1\n"), budget_of(5 * gib)).nearest, HasSubstr("offload.parameters = \"nvme\""));
  EXPECT_EQ(judge(config_of(), budget_of(gib / 2)).nearest, "");
}

TEST(Verdict, CountsTheDisk) {
  Config config = config_of("[offload]\noptimizer = \"nvme\"\nnvme_dir = \"d\"\n");
  NodeBudget budget = budget_of(24 * gib);
  budget.disk_free = 10 * gib;  // of 12.3
  const Verdict verdict = judge(config, budget);
  EXPECT_FALSE(verdict.fits);
  budget.disk_free = 14 * gib;
  EXPECT_TRUE(judge(config, budget).fits);
}

TEST(Verdict, LowersTheBatchLast) {
  const Config config = config_of("[activation_checkpoint]\nmode = \"full\"\n", {"training.local_batch_size=64", "zero.gradient_dtype=bf16",
                                                                                "offload.optimizer=nvme", "offload.parameters=nvme", "offload.nvme_dir=d"});
  NodeBudget budget = budget_of(24 * gib);
  budget.device_free = 4 * gib;
  const std::string nearest = judge(config, budget).nearest;
  EXPECT_THAT(nearest, ::testing::StartsWith("training.local_batch_size = "));
}

TEST(Verdict, PutsStatesOnTheHostWhereTheGpuIsShort) {
  const Config config = config_of();
  NodeBudget budget = budget_of(48 * gib);
  budget.device_free = 6 * gib;
  const Verdict verdict = judge(config, budget);
  EXPECT_FALSE(verdict.fits);
  EXPECT_EQ(verdict.nearest, "offload.optimizer = \"cpu\"");
  const Config offloaded = config_of("[offload]\noptimizer = \"cpu\"\n");
  const Verdict its = judge(offloaded, budget);
  EXPECT_TRUE(its.fits);
  EXPECT_EQ(its.plan.optimizer, 0);
  EXPECT_EQ(its.plan.host, verdict.plan.optimizer);
  EXPECT_EQ(its.plan.pinned, verdict.plan.gradients + verdict.plan.parameters);  // in bf16, of the own shard
  EXPECT_GT(its.rank_peak, its.plan.host + its.plan.pinned);
}

TEST(NearestFit, PrefersMildChangesTogetherToOneHarshChange) {
  const Config config = config_of("[zero]\nstage = 1\n");
  const auto fits = [](const Config& c, const BatchArithmetic&) {
    return (c.zero.stage >= 2 && c.activation_checkpoint.mode == "full") || c.offload.optimizer == "nvme";
  };
  EXPECT_EQ(nearest_fit(config, BatchArithmetic::of(config, 2), false, fits), "zero.stage = 2, activation_checkpoint.mode = \"full\"");
}

}  // namespace
}  // namespace zero
