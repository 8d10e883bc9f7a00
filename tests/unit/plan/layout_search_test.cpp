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

}  // namespace
}  // namespace zero
