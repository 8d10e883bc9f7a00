// The estimate on a run: what fits, what does not, and what it names instead.
#include "zero/estimate/memory_estimate.h"
#include "models/families/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "zero/config/setup.h"
#include "zero/estimate/nearest_fit.h"

namespace zero {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t gib = std::int64_t{1} << 30;

Config config_of(const std::string& more = "", const std::vector<std::string>& overrides = {}) {
  return parse_config(
      "[job]\noutput_dir = \"out\"\n[model]\npreset = \"tinyllama-1.1b\"\n[data]\ntrain = [\"a.bin\"]\n[training]\nsteps = 1\nseq_len = 512\n" +
          more,
      "run.toml", overrides);
}

NodeBudget budget_of(std::int64_t bytes) {
  NodeBudget budget;
  budget.ranks_here = 2;
  budget.memory = {bytes, "MemAvailable"};
  budget.process = gib / 10;
  return budget;
}

MemoryEstimate judge(const Config& config, const NodeBudget& budget) {
  return estimate_memory(config, BatchArithmetic::of(config, 2), make_model(model_config_of(config)), budget);
}

// 1.1 billion parameters, 16 bytes each on both ranks: 33 GiB at stage 0, 16.4 at stage 3.
TEST(MemoryEstimate, RefusesWhatDoesNotFitAndNamesTheNearestThatDoes) {
  const Config config = config_of("[zero]\nstage = 0\n");
  const NodeBudget budget = budget_of(21 * gib);
  const MemoryEstimate estimate = judge(config, budget);
  EXPECT_FALSE(estimate.fits);
  EXPECT_EQ(estimate.nearest, "--set zero.stage=2");
  EXPECT_THAT(estimate.table, HasSubstr("does NOT fit"));
  try {
    require_fit(config, estimate, budget);
    FAIL() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("run.toml:11: [zero] stage = 0: does not fit"));
    EXPECT_THAT(error.what(), HasSubstr("this fits: --set zero.stage=2"));
  }
}

TEST(MemoryEstimate, LetsPassWhatFits) {
  const Config config = config_of();
  const MemoryEstimate estimate = judge(config, budget_of(24 * gib));
  EXPECT_TRUE(estimate.fits) << estimate.table;
  EXPECT_NO_THROW(require_fit(config, estimate, budget_of(24 * gib)));
  EXPECT_THAT(estimate.table, HasSubstr("it fits"));
  EXPECT_GT(estimate.node_peak, 16 * gib);
}

TEST(MemoryEstimate, SaysWhichStagesTheOtherSettingsRuleOut) {
  const std::string pipeline = "global_batch_size = 4\n[zero]\nstage = 1\n[parallel]\npipeline = 2\n";
  EXPECT_THAT(judge(config_of(pipeline), budget_of(24 * gib)).stages,
              ::testing::ContainsRegex("2 .* yes\n.*3 .* yes\n"));
  const Config four = config_of(pipeline);
  const MemoryEstimate estimate =
      estimate_memory(four, BatchArithmetic::of(four, 4), make_model(model_config_of(four)), budget_of(24 * gib));
  EXPECT_THAT(estimate.stages, ::testing::ContainsRegex("3 .*   -\n  -: the other settings rule this stage out"));
}

TEST(MemoryEstimate, NamesTheDiskWhereMemoryIsShort) {
  EXPECT_EQ(judge(config_of(), budget_of(9 * gib)).nearest,
            "--set offload.optimizer=nvme --set offload.nvme_dir=out-offload");
  EXPECT_THAT(judge(config_of("[zero]\nstage = 1\n"), budget_of(5 * gib)).nearest,
              HasSubstr("--set offload.parameters=nvme"));
  EXPECT_EQ(judge(config_of(), budget_of(gib / 2)).nearest, "");
}

TEST(MemoryEstimate, CountsTheDisk) {
  Config config = config_of("[offload]\noptimizer = \"nvme\"\nnvme_dir = \"d\"\n");
  NodeBudget budget = budget_of(24 * gib);
  budget.disk_free = 10 * gib;  // of 12.3
  const MemoryEstimate estimate = judge(config, budget);
  EXPECT_FALSE(estimate.fits);
  budget.disk_free = 14 * gib;
  EXPECT_TRUE(judge(config, budget).fits);
}

// For one of two ranks: half of a checkpoint's bytes on disk, from before the first step on.
TEST(MemoryEstimate, CountsTheCopyOfACheckpointWhereThereIsRoomForIt) {
  const std::string asked = "[checkpoint]\ninterval = 5\nasynchronous = true\n";
  const MemoryEstimate without = judge(config_of("[checkpoint]\ninterval = 5\n"), budget_of(64 * gib)),
                       with = judge(config_of(asked), budget_of(64 * gib));
  EXPECT_FALSE(without.copies_checkpoints);
  EXPECT_TRUE(with.copies_checkpoints);
  EXPECT_EQ(without.plan.copy, 0);
  EXPECT_NEAR(double(with.plan.copy), double(with.plan.checkpoint) / 2, 1e6);
  EXPECT_EQ(with.plan.peak(), without.plan.peak() + with.plan.copy);
  EXPECT_EQ(with.plan.at_rest(), without.plan.at_rest() + with.plan.copy);
  EXPECT_THAT(with.table, HasSubstr("copy of a checkpoint"));
  EXPECT_THAT(without.table, ::testing::Not(HasSubstr("copy of a checkpoint")));
  const MemoryEstimate tight = judge(config_of(asked), budget_of(without.node_peak + with.plan.copy));
  EXPECT_TRUE(tight.fits);
  EXPECT_FALSE(tight.copies_checkpoints);
  EXPECT_EQ(tight.plan.peak(), without.plan.peak());
  EXPECT_EQ(judge(config_of(asked, {"checkpoint.interval=0"}), budget_of(64 * gib)).plan.copy, 0);
  EXPECT_EQ(judge(config_of(asked, {"offload.optimizer=nvme", "offload.nvme_dir=d"}), budget_of(64 * gib)).plan.copy,
            0);
  NodeBudget on_gpu = budget_of(64 * gib);
  on_gpu.device_free = 40 * gib;
  EXPECT_EQ(judge(config_of(asked), on_gpu).plan.host, with.plan.copy);
  EXPECT_EQ(judge(config_of(asked), on_gpu).plan.peak(), judge(config_of(), on_gpu).plan.peak());
}

// In 22 blocks: outputs of two norms and of SwiGLU, (2 x 2048 + 5632) numbers of 2 bytes a token.
TEST(MemoryEstimate, KeepsInputsOnAGpuWhereThereIsRoom) {
  const std::int64_t kept = 22 * 512 * (2 * 2048 + 5632) * 2;
  const MemoryEstimate without = judge(config_of(), budget_of(64 * gib)),
                       with = judge(config_of("[activation_checkpoint]\nkeep = \"on\"\n"), budget_of(64 * gib));
  EXPECT_FALSE(without.keeps_inputs) << "on a CPU it is asked for";
  EXPECT_TRUE(with.keeps_inputs);
  EXPECT_NEAR(double(with.plan.activations.kept - without.plan.activations.kept), double(kept), 0.01 * double(kept));
  NodeBudget on_gpu = budget_of(64 * gib);
  on_gpu.device_free = 40 * gib;
  const MemoryEstimate chosen = judge(config_of(), on_gpu);
  EXPECT_TRUE(chosen.keeps_inputs);
  EXPECT_FALSE(judge(config_of("[activation_checkpoint]\nkeep = \"off\"\n"), on_gpu).keeps_inputs);
  on_gpu.device_free = chosen.plan.peak() + 1;  // it would fit, without a reserve
  const MemoryEstimate tight = judge(config_of(), on_gpu);
  EXPECT_TRUE(tight.fits);
  EXPECT_FALSE(tight.keeps_inputs);
  EXPECT_LT(tight.plan.peak(), chosen.plan.peak());
  on_gpu.device_free = tight.plan.peak() + 1;
  const Config asked = config_of("[activation_checkpoint]\nkeep = \"on\"\n");
  EXPECT_EQ(judge(asked, on_gpu).nearest, "--set activation_checkpoint.keep=auto");
}

TEST(MemoryEstimate, LowersTheBatchLast) {
  const Config config = config_of("[activation_checkpoint]\nmode = \"full\"\n",
                                  {"training.local_batch_size=64", "zero.gradient_dtype=bf16", "offload.optimizer=nvme",
                                   "offload.parameters=nvme", "offload.nvme_dir=d"});
  NodeBudget budget = budget_of(24 * gib);
  budget.device_free = 4 * gib;
  const std::string nearest = judge(config, budget).nearest;
  EXPECT_THAT(nearest, ::testing::StartsWith("--set training.local_batch_size="));
  EXPECT_THAT(nearest, ::testing::EndsWith(" --set training.global_batch_size=128"));  // the training stays the same
}

TEST(MemoryEstimate, PutsStatesOnTheHostWhereTheGpuIsShort) {
  const Config config = config_of();
  NodeBudget budget = budget_of(48 * gib);
  budget.device_free = 6 * gib;
  const MemoryEstimate estimate = judge(config, budget);
  EXPECT_FALSE(estimate.fits);
  EXPECT_EQ(estimate.nearest, "--set offload.optimizer=cpu");
  const Config offloaded = config_of("[offload]\noptimizer = \"cpu\"\n");
  const MemoryEstimate its = judge(offloaded, budget);
  EXPECT_TRUE(its.fits);
  EXPECT_EQ(its.plan.optimizer, 0);
  EXPECT_EQ(its.plan.host, estimate.plan.optimizer);
  EXPECT_EQ(its.plan.pinned, estimate.plan.gradients + estimate.plan.parameters);  // in bf16, of the own shard
  EXPECT_GT(its.rank_peak, its.plan.host + its.plan.pinned);
}

// "--set a=b --set c=d" as the pairs that a command line would give.
std::vector<std::string> pairs_of(const std::string& arguments) {
  std::vector<std::string> pairs;
  std::istringstream words(arguments);
  for (std::string word; words >> word;)
    if (word != "--set") pairs.push_back(word);
  return pairs;
}

TEST(MemoryEstimate, ItsProposalIsAcceptedAndFits) {
  int named = 0;
  for (const bool on_device : {false, true})
    for (const double size : {0.7, 1.5, 3.0, 5.0, 9.0, 14.0, 20.0})
      for (const int stage : {0, 1, 3}) {
        const std::vector<std::string> given{"training.local_batch_size=4", "zero.stage=" + std::to_string(stage)};
        NodeBudget budget = budget_of(on_device ? 64 * gib : std::int64_t(size * double(gib)));
        budget.disk_free = 100 * gib;
        if (on_device) budget.device_free = std::int64_t(size * double(gib));
        const MemoryEstimate estimate = judge(config_of("", given), budget);
        if (estimate.fits || estimate.nearest.empty()) continue;
        std::vector<std::string> all = given;
        for (const std::string& pair : pairs_of(estimate.nearest)) all.push_back(pair);
        Config changed;
        ASSERT_NO_THROW(changed = config_of("", all)) << estimate.nearest;
        EXPECT_TRUE(judge(changed, budget).fits) << estimate.nearest;
        EXPECT_EQ(BatchArithmetic::of(changed, 2).global_batch_size, 8) << estimate.nearest;
        ++named;
      }
  EXPECT_GT(named, 10);
}

TEST(NearestFit, ProposesAdaptersWhereNothingElseFits) {
  const std::string text =
      "[job]\noutput_dir = \"my out\"\n[model]\npath = \"m\"\n[data]\ntrain = [\"a.bin\"]\n[training]\nsteps = 1\nseq_len = 512\n";
  const Config config = parse_config(text, "run.toml");
  const auto adapters = [](const Config& c, const BatchArithmetic&) { return c.lora && c.lora->quantization == "nf4"; };
  EXPECT_EQ(nearest_fit(config, BatchArithmetic::of(config, 1), false, adapters),
            "--set lora.r=8 --set lora.quantization=nf4");
  const auto eight = [](const Config& c, const BatchArithmetic&) { return c.lora && c.lora->quantization != "none"; };
  EXPECT_EQ(nearest_fit(config, BatchArithmetic::of(config, 1), false, eight),
            "--set lora.r=8 --set lora.quantization=int8");
  const auto disk = [](const Config& c, const BatchArithmetic&) { return c.offload.optimizer == "nvme"; };
  EXPECT_EQ(nearest_fit(config, BatchArithmetic::of(config, 1), false, disk),
            "--set offload.optimizer=nvme --set 'offload.nvme_dir=my out-offload'");
  const Config random = config_of();
  EXPECT_EQ(nearest_fit(random, BatchArithmetic::of(random, 1), false, adapters), "");
}

TEST(NearestFit, PrefersMildChangesTogetherToOneHarshChange) {
  const Config config = config_of("[zero]\nstage = 1\n");
  const auto fits = [](const Config& c, const BatchArithmetic&) {
    return (c.zero.stage >= 2 && c.activation_checkpoint.mode == "full") || c.offload.optimizer == "nvme";
  };
  EXPECT_EQ(nearest_fit(config, BatchArithmetic::of(config, 2), false, fits),
            "--set zero.stage=2 --set activation_checkpoint.mode=full");
}

}  // namespace
}  // namespace zero
