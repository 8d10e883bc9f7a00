#include "zero/plan/layout_search.h"

#include <gtest/gtest.h>

#include <map>

#include "zero/config/setup.h"

namespace zero {
namespace {

/// Every number is disturbed when it is measured first: it is ten times the second one.
class DisturbedKernels final : public Kernels {
 public:
  explicit DisturbedKernels(Timings& timings) : timings_(timings) {}
  double product(const ProductShape& shape, ProductPass) override { return 1e-9 * shape.flops() * number("product"); }
  double attention(const AttentionWork&, bool) override { return number("attention"); }
  double rows(RowKernel, std::int64_t, std::int64_t, at::ScalarType) override { return number("rows"); }
  double stream(double bytes) override { return 1e-9 * bytes * number("stream"); }
  std::vector<std::string> sources() const override { return {}; }

 private:
  double number(const std::string& name) {
    return timings_.get(
        name, [this, name] { return measured_[name]++ == 0 ? 10.0 : 1.0; }, [] { return 0.0; });
  }
  Timings& timings_;
  std::map<std::string, int> measured_;
};

PlanMachine machine_with(double measured_before) {
  PlanMachine machine;
  machine.ranks_per_node = 2;
  machine.budget.ranks_here = 2;
  machine.budget.memory.available = std::int64_t{1} << 40;
  machine.timings = std::make_unique<Timings>("");
  if (measured_before > 0)
    for (const char* name : {"product", "attention", "rows", "stream"}) machine.timings->put(name, measured_before);
  machine.kernels = std::make_unique<DisturbedKernels>(*machine.timings);
  machine.links.ranks_per_node = 2;
  machine.links.in_node.fill({0, 1e-9});
  machine.disk_read.value = machine.disk_write.value = machine.disk_update.value = machine.host_memory.value =
      machine.host_link.value = 1e9;
  return machine;
}

double planned_seconds(double measured_before) {
  const Config config = parse_config(
      "[job]\noutput_dir = \"out\"\n[model]\npreset = \"llama-15m\"\n[data]\ntrain = [\"a.bin\"]\n"
      "[training]\nsteps = 10\nseq_len = 64\nglobal_batch_size = 8\n",
      "run.toml");
  const ModelConfig model = model_config_of(config);
  PlanMachine machine = machine_with(measured_before);
  SearchOptions options;
  options.only_given = true;
  return LayoutSearch(config, model, machine).find(options).best.at(0).time.seconds();
}

TEST(LayoutSearch, PlansWithTheConfirmedNumbers) { EXPECT_DOUBLE_EQ(planned_seconds(0), planned_seconds(1)); }

TEST(LayoutSearch, PlansWithTheNumbersOfAnEarlierCall) { EXPECT_GT(planned_seconds(10), 5 * planned_seconds(1)); }

SearchResult found(const std::string& more, int best, bool any_batch = false, int nodes = 1) {
  const Config config = parse_config(
      "[job]\noutput_dir = \"out\"\n[model]\npreset = \"llama-tiny\"\n[data]\ntrain = [\"a.bin\"]\n"
      "[training]\nsteps = 10\nseq_len = 64\nglobal_batch_size = 8\n" +
          more,
      "run.toml");
  const ModelConfig model = model_config_of(config);
  PlanMachine machine = machine_with(1);
  machine.nodes = nodes;
  return LayoutSearch(config, model, machine).find({.best = best, .any_batch = any_batch, .shows_given = true});
}

// Stage 1 cannot offload weights, so a search that began with the file's own setting would drop it.
TEST(LayoutSearch, SettingsOfTheFileKeepNoLayoutOut) {
  const SearchResult offloaded =
                         found("[zero]\nstage = 3\n[offload]\noptimizer = \"cpu\"\nparameters = \"cpu\"\n", 100),
                     plain = found("", 100);
  EXPECT_EQ(offloaded.possible, plain.possible);
  ASSERT_EQ(offloaded.best.size(), plain.best.size());
  for (std::size_t i = 0; i < plain.best.size(); ++i) EXPECT_TRUE(offloaded.best[i].is_same(plain.best[i])) << i;
  ASSERT_TRUE(offloaded.given);
  EXPECT_EQ(offloaded.given->describe(), "stage 3, states on cpu, weights on cpu");
  EXPECT_EQ(offloaded.why_not_given, "");
}

TEST(LayoutSearch, EquallyFastLayoutsAreSortedByMemory) {
  const SearchResult all = found("", 100);
  int ties = 0;
  for (std::size_t i = 1; i < all.best.size(); ++i) {
    const PlannedLayout &a = all.best[i - 1], &b = all.best[i];
    if (a.time.seconds() != b.time.seconds()) continue;
    ++ties;
    EXPECT_LE(a.memory.rank_peak, b.memory.rank_peak) << a.describe() << " before " << b.describe();
  }
  EXPECT_GT(ties, 0);
  // The best few are the first of all, although ties go beyond them.
  const SearchResult few = found("", 2);
  ASSERT_EQ(few.best.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(few.best[i].is_same(all.best[i])) << few.best[i].describe();
}

TEST(LayoutSearch, NoTwoRowsAreAlike) {
  for (const int nodes : {1, 2}) {
    const SearchResult all = found("", 1000, true, nodes);
    for (std::size_t i = 0; i < all.best.size(); ++i)
      for (std::size_t k = 0; k < i; ++k) EXPECT_FALSE(all.best[i].is_same(all.best[k])) << all.best[i].describe();
  }
}

TEST(LayoutSearch, AGivenLayoutThatIsNotLegalSaysWhy) {
  const SearchResult result = found("local_batch_size = 3\n", 3, true);
  EXPECT_FALSE(result.given);
  EXPECT_NE(result.why_not_given, "");
  EXPECT_EQ(result.best.size(), 3U);
}

}  // namespace
}  // namespace zero
