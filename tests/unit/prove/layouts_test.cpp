#include "zero/prove/layouts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "models/ops/kernels/tile_matrix.h"
#include "tests/unit/prove/made_records.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/prove/proof.h"
#include "zero/prove/rounding.h"

namespace zero {
namespace {

const std::string toml = R"([job]
output_dir = "out"
[model]
preset = "llama-tiny"
[data]
train = ["tokens.bin"]
[training]
steps = 30
seq_len = 16
local_batch_size = 2
global_batch_size = 8
)";

Config config_with(const std::vector<std::string>& overrides) { return parse_config(toml, "test.toml", overrides); }

std::vector<Layout> layouts(const std::vector<std::string>& overrides = {}, const LayoutLimits& limits = {}) {
  return layouts_of(config_with(overrides), limits);
}

TEST(Layouts, EachThingIsVaried) {
  for (const bool full : {false, true}) {
    std::set<int> ranks;
    std::set<std::int64_t> stages, degrees, locals;
    std::set<std::string> precisions, others;
    bool resumed = false;
    for (const Layout& layout : layouts({}, {.full = full})) {
      ranks.insert(layout.ranks);
      stages.insert(layout.stage);
      degrees.insert(layout.shard_degree);
      locals.insert(layout.local_batch_size);
      precisions.insert(layout.precision);
      others.insert(layout.others.begin(), layout.others.end());
      resumed = resumed || !layout.begins_as.empty();
    }
    EXPECT_EQ(ranks, (std::set<int>{1, 2, 4}));
    EXPECT_EQ(stages, (std::set<std::int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(degrees, (std::set<std::int64_t>{0, 2}));
    EXPECT_GE(locals.size(), 3);
    EXPECT_EQ(precisions.size(), 2);
    for (const char* other : {"offload.optimizer=nvme", "offload.parameters=nvme", "offload.parameters=cpu",
                              "activation_checkpoint.mode=full", "comm.shared_memory=off"})
      EXPECT_TRUE(others.contains(other)) << other;
    EXPECT_TRUE(resumed);
  }
}

// The rounding of coarser products is measured against exact ones, and exact layouts show small errors.
TEST(Layouts, LowerPrecisionsOfProductsHaveAnExactProbe) {
  for (const std::string products : {"highest", "high", "medium"}) {
    const std::vector<Layout> all = layouts({"training.precision=fp32", "training.matmul_precision=" + products});
    const bool coarse = products != "highest" && kernels::has_tile_products();
    EXPECT_EQ(all[0].arithmetic(), coarse ? "fp32 " + products : "fp32");
    EXPECT_EQ(all[1].arithmetic(), coarse ? "fp32" : "bf16");
    const auto exact = [](const Layout& layout) { return layout.name.starts_with("fp32, "); };
    EXPECT_EQ(std::any_of(all.begin(), all.end(), exact), coarse);
    for (const Layout& layout : all) {
      const std::vector<std::string> settings = layout.overrides(8);
      EXPECT_NE(std::find(settings.begin(), settings.end(), "training.matmul_precision=" + layout.products),
                settings.end());
      EXPECT_EQ(layout.products != "highest", coarse && !exact(layout) && !layout.is_probe) << layout.name;
    }
  }
  EXPECT_LT(unit_roundoff("fp32"), unit_roundoff("fp32 high"));
  EXPECT_LT(unit_roundoff("fp32 high"), unit_roundoff("fp32 medium"));
}

TEST(Layouts, AllCanBeRun) {
  const std::vector<std::vector<std::string>> kinds{{},
                                                    {"training.precision=fp32"},
                                                    {"training.global_batch_size=6", "training.local_batch_size=3"},
                                                    {"training.global_batch_size=12", "training.local_batch_size=1"},
                                                    {"lora.r=4"},
                                                    {"optimizer.state_dtype=bf16", "optimizer.master_dtype=split"},
                                                    {"checkpoint.interval=5", "training.on_nonfinite=rollback"},
                                                    {"job.reproducible=ranks"},
                                                    {"job.reproducible=ranks", "training.global_batch_size=12"},
                                                    {"job.reproducible=ranks", "job.reproducible_rows=2"}};
  for (const auto& overrides : kinds) {
    const std::int64_t global = global_batch_of(config_with(overrides));
    for (const Layout& layout : layouts(overrides, {.full = true})) {
      std::vector<std::string> settings = overrides;
      for (const std::string& setting : layout.overrides(global)) settings.push_back(setting);
      settings.emplace_back("offload.nvme_dir=/tmp");
      const Config config = config_with(settings);
      EXPECT_NO_THROW(BatchArithmetic::of(config, layout.ranks)) << layout.name;
    }
  }
}

TEST(Layouts, LeanOnThoseBeforeThem) {
  const std::vector<Layout> all = layouts({}, {.full = true});
  std::set<std::string> before;
  for (const Layout& layout : all) {
    for (const std::string& name : {layout.same_as, layout.begins_as})
      EXPECT_TRUE(name.empty() || before.contains(name)) << layout.name << ": " << name;
    EXPECT_TRUE(before.insert(layout.name).second) << layout.name << " twice";
  }
  const std::vector<Layout> some = chosen(all, {"recompute"});
  std::vector<std::string> names;
  for (const Layout& layout : some) names.push_back(layout.name);
  EXPECT_EQ(names, (std::vector<std::string>{"reference", "probe", "stage 0", "stage 3", "recompute"}));
  EXPECT_THROW(chosen(all, {"stage 4"}), InputError);
  EXPECT_EQ(chosen(all, {"2"}).back().name, "micro-batches");  // the second that --list shows, and the third of all
  EXPECT_EQ(chosen(all, {"1"}).size(), 2);
}

// With one micro-batch; with several stages 0 and 1 add them before ranks, 2 and 3 after.
TEST(Layouts, StagesHaveTheSameBitsWhereTheyAddAlike) {
  const auto same_as = [](const std::vector<Layout>& all, const std::string& name) {
    return std::find_if(all.begin(), all.end(), [&](const Layout& l) { return l.name == name; })->same_as;
  };
  const std::vector<Layout> one = layouts();
  EXPECT_EQ(same_as(one, "stage 2"), "stage 0");
  EXPECT_EQ(same_as(one, "stage 3"), "stage 0");
  const std::vector<Layout> several = layouts({"training.global_batch_size=64"});
  EXPECT_EQ(same_as(several, "stage 1"), "stage 0");
  EXPECT_EQ(same_as(several, "stage 2"), "");
  EXPECT_EQ(same_as(several, "stage 3"), "stage 2");
}

// Stage 0 and the others, and chunks of a disk, differ in their parts. Equal parts must give equal bits.
TEST(Layouts, OptimizersThatSumOverTensorsDoSoByTheirParts) {
  for (const char* optimizer : {"adamw", "muon", "adafactor", "prodigy"}) {
    const bool sums = optimizer == std::string("adafactor") || optimizer == std::string("prodigy");
    std::map<std::string, std::string> same_as;
    for (const Layout& layout : layouts({std::string("optimizer.name=") + optimizer}, {.full = true}))
      same_as[layout.name] = layout.same_as;
    EXPECT_EQ(same_as.at("stage 1"), sums ? "" : "stage 0") << optimizer;
    for (const char* stage : {"stage 2", "stage 3"})
      EXPECT_EQ(same_as.at(stage), sums ? "stage 1" : "stage 0") << optimizer << stage;
    EXPECT_EQ(same_as.at("states on disk"), sums ? "" : "stage 3") << optimizer;
    EXPECT_EQ(same_as.at("stage 1, states on disk"), sums ? "" : "stage 1") << optimizer;
    for (const char* same : {"states in host memory", "recompute", "messages", "resumed"})
      EXPECT_EQ(same_as.at(same), "stage 3") << optimizer << same;
  }
}

// For any ranks, three too, and any stages, pipelines and micro-batches.
TEST(Layouts, AllOweTheReferencesBitsWhereSumsAreInOrder) {
  for (const char* batch : {"training.global_batch_size=8", "training.global_batch_size=12"}) {
    const std::vector<Layout> all =
        layouts({"job.reproducible=ranks", "job.reproducible_rows=2", batch}, {.full = true});
    EXPECT_GE(all.size(), 15u);
    for (const Layout& layout : all) {
      EXPECT_TRUE(layout.tensor == 1 && layout.context == 1) << layout.name;
      const bool compared = !layout.is_probe && layout.name != "reference";
      EXPECT_EQ(layout.same_as, !compared ? "" : layout.precision == "bf16" ? "reference" : "probe") << layout.name;
      EXPECT_NE(layout.describe(8).find(" x 2 rows, "), std::string::npos) << layout.describe(8);
    }
  }
}

TEST(Layouts, ABatchThatNoRanksDivideIsRefused) {
  EXPECT_THROW(layouts({"training.global_batch_size=1", "training.local_batch_size=1"}), InputError);
  EXPECT_THROW(layouts({"training.global_batch_size=7"}), InputError);
  EXPECT_THROW(layouts({"training.global_batch_size=7"}, {.ranks = 1}), InputError);  // in one way alone
  EXPECT_EQ(layouts({}, {.ranks = 1}).size(), 3);                                     // micro-batches
}

TEST(Layouts, AsManyRanksAsAreAskedFor) {
  int most = 0;
  for (const Layout& layout : layouts({}, {.ranks = 8})) most = std::max(most, layout.ranks);
  EXPECT_EQ(most, 8);
}

TEST(Layouts, RowsAreThoseThatAreComputedAtOnce) {
  for (const Layout& layout : layouts({"job.reproducible=ranks"})) {
    EXPECT_NE(layout.describe(8).find(" x 1 rows"), std::string::npos) << layout.describe(8);
    EXPECT_EQ(layout.is_probe || layout.name == "reference", layout.same_as.empty()) << layout.name;
  }
}

TEST(Layouts, ThreadsAreVariedWhereTheyOweBits) {
  const auto varied = [](const std::vector<std::string>& overrides) {
    const std::vector<Layout> all = layouts(overrides);
    return std::count_if(all.begin(), all.end(), [](const Layout& layout) { return layout.more_threads; });
  };
  EXPECT_EQ(varied({"job.reproducible=ranks"}), 1);
  EXPECT_EQ(varied({}), 0);
}

TEST(Judge, BitsThatAreOwedAreNotRounding) {
  using testing::made_run;
  std::map<std::string, RunRecord> records{{"reference", made_run({.noise = 1e-2, .seed = 1})},
                                           {"probe", made_run({.noise = 1e-7, .seed = 2})},
                                           {"other", made_run({.noise = 1e-2, .seed = 3})},
                                           {"same", made_run({.noise = 1e-2, .seed = 1})}};
  const RoundingBounds bounds(records.at("reference"), "bf16", records.at("probe"), "fp32", 64);
  Layout layout;
  layout.precision = "bf16";
  layout.name = "other";
  EXPECT_EQ(judge(layout, records, bounds, "bf16").agreement, Agreement::rounding);
  layout.same_as = "reference";
  EXPECT_EQ(judge(layout, records, bounds, "bf16").agreement, Agreement::different);
  layout.name = "same";
  EXPECT_EQ(judge(layout, records, bounds, "bf16").agreement, Agreement::bits);
}

}  // namespace
}  // namespace zero
