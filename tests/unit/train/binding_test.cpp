// Each rule about what would help, where it holds and where it does not.
#include "zero/train/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zero {
namespace binding_test {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A step of 10 s, most of it for one activity.
StepFigures mostly(Activity activity) {
  StepFigures figures;
  figures.seconds.fill(0.1);
  figures.seconds[std::size_t(activity)] = 10 - 0.1 * (activities - 1);
  figures.ranks = figures.ranks_per_node = 4;
  figures.micro_batches = 2;
  figures.slowest_busy = figures.step() - figures.of(Activity::ranks);
  return figures;
}

Config plain() {
  Config config;
  config.training.precision = "bf16";
  return config;
}

struct Case {
  const char* name;
  Activity by;
  const char* remedy;     // in place by `change`
  const char* otherwise;  // without it
  void (*change)(StepFigures&, Config&);
};

class Rules : public ::testing::TestWithParam<Case> {};

TEST_P(Rules, HoldWhereTheyApply) {
  const Case& one = GetParam();
  StepFigures figures = mostly(one.by);
  Config config = plain();
  EXPECT_EQ(binding_of(figures), one.by);
  EXPECT_THAT(remedy_of(figures, config), HasSubstr(one.otherwise));
  one.change(figures, config);
  EXPECT_EQ(binding_of(figures), one.by);
  EXPECT_THAT(remedy_of(figures, config), HasSubstr(one.remedy));
}

constexpr const char* more_tokens = "training.global_batch_size";
constexpr const char* stage_2 = "zero.stage = 2";
const Case cases[] = {
    {"recomputation", Activity::products, "activation_checkpoint.mode", "more cores",
     [](StepFigures&, Config& c) { c.activation_checkpoint.mode = "full"; }},
    {"fp32", Activity::products, "training.precision", "more cores",
     [](StepFigures&, Config& c) { c.training.precision = "fp32"; }},
    {"attention", Activity::attention, "seq_len", "seq_len", [](StepFigures&, Config&) {}},
    {"few_tokens", Activity::kernels, more_tokens, "local_batch_size",
     [](StepFigures& f, Config&) { f.micro_batches = 1; }},
    {"recomputed_kernels", Activity::kernels, "activation_checkpoint.mode", "local_batch_size",
     [](StepFigures&, Config& c) { c.activation_checkpoint.mode = "selective"; }},
    {"gathers_of_activations", Activity::gathers, "parallel.tensor", stage_2,
     [](StepFigures&, Config& c) { c.parallel.tensor = 2; }},
    {"gathers_between_nodes", Activity::gathers, "zero.shard_degree = 2", stage_2,
     [](StepFigures& f, Config&) { f.ranks_per_node = 2; }},
    {"gathers_at_stage_1", Activity::gathers, more_tokens, stage_2, [](StepFigures&, Config& c) { c.zero.stage = 1; }},
    {"gathers_of_offloaded_weights", Activity::gathers, more_tokens, stage_2,
     [](StepFigures&, Config& c) { c.offload.parameters = "cpu"; }},
    {"gathers_inside_a_degree", Activity::gathers, stage_2, stage_2,
     [](StepFigures& f, Config& c) {
       f.ranks_per_node = 2;
       c.zero.shard_degree = 2;
     }},
    {"sums_of_activations", Activity::sums, "parallel.tensor", "zero.stage = 1",
     [](StepFigures&, Config& c) { c.parallel.context = 2; }},
    {"sums_between_nodes", Activity::sums, "zero.shard_degree = 2", "zero.stage = 1",
     [](StepFigures& f, Config&) { f.ranks_per_node = 2; }},
    {"sums_once", Activity::sums, more_tokens, "zero.stage = 1", [](StepFigures& f, Config&) { f.micro_batches = 1; }},
    {"weights_on_disk", Activity::disk, "offload.parameters", "offload.optimizer",
     [](StepFigures&, Config& c) { c.offload.parameters = "nvme"; }},
    {"states_on_disk", Activity::disk, more_tokens, "offload.optimizer",
     [](StepFigures& f, Config&) { f.micro_batches = 1; }},
    {"data", Activity::data, "fast disk", "fast disk", [](StepFigures&, Config&) {}},
    {"pipeline", Activity::ranks, "more micro-batches", "late in turns",
     [](StepFigures&, Config& c) { c.parallel.pipeline = 2; }},
    {"slow_rank", Activity::ranks, "rank 3 is the slowest", "late in turns",
     [](StepFigures& f, Config&) {
       f.slowest_rank = 3;
       f.slowest_busy *= 1.2;
     }},
    {"other", Activity::other, "log_interval", "log_interval", [](StepFigures&, Config&) {}},
};
INSTANTIATE_TEST_SUITE_P(Table, Rules, ::testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Binding, GathersAndSumsAreOneLink) {
  StepFigures figures = mostly(Activity::products);
  figures.seconds = {4, 0, 0, 3, 2, 0, 0, 0, 0};
  EXPECT_EQ(binding_of(figures), Activity::gathers);
  figures.seconds = {4, 0, 0, 2, 3, 0, 0, 0, 0};
  EXPECT_EQ(binding_of(figures), Activity::sums);
}

TEST(Binding, TheLineNamesRatesPartsAndRemedy) {
  StepFigures figures = mostly(Activity::gathers);
  figures.ranks_per_node = 2;
  figures.link_rate = 9.8e9;
  figures.best_link_rate = 10.04e9;
  EXPECT_THAT(
      what_binds(figures, plain()),
      StartsWith("bound by the link, 93 % of a step of 10.00 s at 9.8 of 10.0 GB/s: zero.shard_degree = 2 would"));
  EXPECT_THAT(what_binds(mostly(Activity::products), plain()),
              StartsWith("bound by matrix products, 92 % of a step of 10.00 s: "));
}

}  // namespace binding_test
}  // namespace zero
