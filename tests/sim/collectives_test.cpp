// The sequence and the volume of collectives of each stage are those of the table in docs/design.md.
#include <gtest/gtest.h>

#include "models/families/families.h"
#include "tests/sim/training_run.h"
#include "zero/core/chain.h"

namespace zero::testing {
namespace {

struct Sizes {
  std::int64_t all = 0, embedding = 0, head = 0;
};

// Elements of the flat vectors, padding included.
Sizes sizes_of(const ModelConfig& config, int shards) {
  Model model = make_model(config);
  const Chain chain = chain_of(model);
  Sizes sizes;
  for (const GroupSpec& spec : plan_groups(units_of(chain))) {
    const std::int64_t numel = FlatLayout(specs_of(units_of(chain), spec), shards).numel();
    sizes.all += numel;
    if (spec.unit == 0) sizes.embedding = numel;
    if (spec.unit == int(chain.size()) - 1) sizes.head = numel;
  }
  return sizes;
}

// Elements that a rank sends in one step, except scalars (norm and loss).
double volume_of_step(const std::vector<SimCall>& calls) {
  double volume = 0;
  for (const SimCall& call : calls) {
    const double share = double(call.group.size() - 1) / double(call.group.size());
    if (call.call.numel <= 1) continue;
    if (call.call.kind == CollectiveKind::all_gather || call.call.kind == CollectiveKind::reduce_scatter)
      volume += share * double(call.call.numel);
    if (call.call.kind == CollectiveKind::all_reduce) volume += 2 * share * double(call.call.numel);
  }
  return volume;
}

RunResult run_steps(int stage, int micro_batches, int degree, int steps, bool tied) {
  RunOptions options;
  options.config = small_config(tied);
  options.stage = stage;
  options.ranks = 4;
  options.micro_batches = micro_batches;
  options.global_batch = 8;
  options.shard_degree = degree;
  options.steps = steps;
  // Exporting gathers too: its calls are the same in both runs and cancel below.
  return run_training(options);
}

class CollectiveVolume : public ::testing::TestWithParam<std::tuple<int, int, int>> {};

TEST_P(CollectiveVolume, EqualsTheTable) {
  const auto [stage, micro_batches, degree] = GetParam();
  const double measured = volume_of_step(run_steps(stage, micro_batches, degree, 3, false).calls[1]) -
                          volume_of_step(run_steps(stage, micro_batches, degree, 2, false).calls[1]);
  const int shards = stage == 0 ? 4 : degree;
  const Sizes sizes = sizes_of(small_config(false), shards);
  const double share = double(shards - 1) / shards, a = micro_batches;
  const double gathered[] = {0, 1, 1, 2 * a};
  const double reduced[] = {2, 1, a, a};
  double expected = share * (gathered[stage] + reduced[stage]) * double(sizes.all);
  // Stage 3 keeps the head from forward to backward, and the lookup's backward needs no weights.
  if (stage == 3) expected -= share * a * double(sizes.head + sizes.embedding);
  const int replicas = 4 / shards;
  expected += 2.0 * (replicas - 1) / replicas * double(sizes.all) / shards;
  EXPECT_DOUBLE_EQ(measured, expected);
}

INSTANTIATE_TEST_SUITE_P(Stages, CollectiveVolume,
                         ::testing::Combine(::testing::Range(0, 4), ::testing::Values(1, 2), ::testing::Values(2, 4)));

// kind, phase and unit of the calls of the second step on one rank.
std::vector<std::string> sequence_of(int stage, int micro_batches) {
  const auto one = run_steps(stage, micro_batches, 4, 1, false).calls[2],
             two = run_steps(stage, micro_batches, 4, 2, false).calls[2];
  std::size_t exports = 0;
  while (exports < one.size() && one[one.size() - 1 - exports].call.tag.phase == Phase::save) ++exports;
  std::vector<std::string> names;
  for (std::size_t i = one.size() - exports; i < two.size() - exports; ++i) {
    const CallRecord& call = two[i].call;
    std::string name = std::string(name_of(call.kind)) + " " + name_of(call.tag.phase);
    if (call.tag.unit >= 0) name += " " + std::to_string(call.tag.unit);
    names.push_back(name);
  }
  return names;
}

const std::vector<std::string> norm = {"all_reduce optimizer"}, loss = {"all_reduce other"};

std::vector<std::string> joined(std::vector<std::vector<std::string>> parts) {
  std::vector<std::string> all;
  for (auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(CollectiveSequence, FollowsTheStage) {
  const std::vector<std::string> updated = {"all_gather gather_updated 0", "all_gather gather_updated 1",
                                            "all_gather gather_updated 2", "all_gather gather_updated 3"};
  const std::vector<std::string> reduce = {"reduce_scatter reduce 3", "reduce_scatter reduce 2",
                                           "reduce_scatter reduce 1", "reduce_scatter reduce 0"};
  const std::vector<std::string> all_reduce = {"all_reduce reduce 3", "all_reduce reduce 2", "all_reduce reduce 1",
                                               "all_reduce reduce 0"};
  const std::vector<std::string> stage3 = {
      "all_gather forward 0",    "all_gather forward 1",   "all_gather forward 2",    "all_gather forward 3",
      "reduce_scatter reduce 3", "all_gather backward 2",  "reduce_scatter reduce 2", "all_gather backward 1",
      "reduce_scatter reduce 1", "reduce_scatter reduce 0"};
  EXPECT_EQ(sequence_of(0, 1), joined({all_reduce, norm, loss}));
  EXPECT_EQ(sequence_of(0, 2), joined({all_reduce, norm, loss}));
  EXPECT_EQ(sequence_of(1, 1), joined({reduce, norm, updated, loss}));
  EXPECT_EQ(sequence_of(1, 2), joined({reduce, norm, updated, loss}));
  EXPECT_EQ(sequence_of(2, 1), joined({reduce, norm, updated, loss}));
  EXPECT_EQ(sequence_of(2, 2), joined({reduce, reduce, norm, updated, loss}));
  EXPECT_EQ(sequence_of(3, 1), joined({stage3, norm, loss}));
  EXPECT_EQ(sequence_of(3, 2), joined({stage3, stage3, norm, loss}));
}

/// A store that says when it is updated.
class Telling final : public StateStore {
 public:
  Telling(std::unique_ptr<StateStore> inner, std::function<void()> tell)
      : StateStore(inner->elements(), inner->states()), inner_(std::move(inner)), tell_(std::move(tell)) {}
  void for_each_chunk(StateAccess access, const std::function<void(const StateChunk&)>& visit) override {
    if (access == StateAccess::read_write) tell_();
    inner_->for_each_chunk(access, visit);
  }

 private:
  std::unique_ptr<StateStore> inner_;
  std::function<void()> tell_;
};

// New weights of a group travel while the next one is updated, and are there before the next forward pass.
TEST(CollectiveSequence, AGroupIsGatheredBeforeTheNextOneIsUpdated) {
  for (const int stage : {1, 2}) {
    std::vector<std::string> order;  // on rank 0
    RunOptions options;
    options.config = small_config(false);
    options.stage = stage;
    options.ranks = 2;
    options.global_batch = 2;
    options.steps = 1;
    options.policy_of = [&](int rank) {
      OffloadPolicy policy;
      policy.optimizer = [&order, rank](const std::string& name, std::int64_t elements,
                                        const std::vector<StateSpec>& states) -> std::unique_ptr<StateStore> {
        return std::make_unique<Telling>(host_state_stores()(name, elements, states), [&order, rank, name] {
          if (rank == 0) order.push_back("update " + name);
        });
      };
      return policy;
    };
    run_training(options, [&](Engine& engine, int rank, int step) {
      if (rank != 0 || step != 0) return;
      engine.mesh().ranks().set_observer([&order](const CallRecord& call) {
        if (call.tag.phase == Phase::gather_updated) order.push_back("gather group" + std::to_string(call.tag.group));
      });
    });
    EXPECT_EQ(order, (std::vector<std::string>{"update group0", "gather group0", "update group1", "gather group1",
                                               "update group2", "gather group2", "update group3", "gather group3"}));
  }
}

TEST(CollectiveSequence, EveryRankIssuesTheSame) {
  for (int stage = 0; stage < 4; ++stage) {
    const RunResult run = run_steps(stage, 2, 2, 2, true);
    for (int r = 1; r < 4; ++r) {
      ASSERT_EQ(run.calls[r].size(), run.calls[0].size());
      for (std::size_t i = 0; i < run.calls[0].size(); ++i)
        EXPECT_EQ(run.calls[r][i].call.describe(), run.calls[0][i].call.describe());
    }
  }
}

}  // namespace
}  // namespace zero::testing
