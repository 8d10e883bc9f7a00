// Non-finite values are found by name at any place, equally on all ranks. A non-finite loss shows in the norm of every
// rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "comm/object_collectives.h"
#include "models/initial_weights.h"
#include "tests/sim/every_optimizer.h"
#include "tests/sim/training_run.h"
#include "zero/core/states/nonfinite_search.h"

namespace zero::testing {
namespace nonfinite_search_test {

constexpr double nan_ = std::numeric_limits<double>::quiet_NaN(), inf_ = std::numeric_limits<double>::infinity();

struct Planted {
  int rank = 0, unit = 0, parameter = 0;  // parameter: among those that are trained
  double value = nan_;
};

Parameter& parameter_of(Engine& engine, const Planted& planted) {
  int before = planted.parameter;
  for (Parameter& parameter : engine.units().units[std::size_t(planted.unit)]->parameters())
    if (parameter.trainable && before-- == 0) return parameter;
  throw std::runtime_error("no such parameter");
}

/// The tensor that a parameter's last number belongs to.
TensorPlace place_of(Engine& engine, const Planted& planted) {
  return {planted.unit, parameter_of(engine, planted).parts.back().name};
}

struct Layout {
  std::string name;
  int stage = 0, ranks = 1, shard_degree = 0, micro_batches = 1;
  bool lora = false;
};

class NonfiniteSearch : public ::testing::TestWithParam<Layout> {
 protected:
  RunOptions options() const {
    const Layout& layout = GetParam();
    RunOptions run;
    run.config = small_config(false);
    run.stage = layout.stage;
    run.ranks = layout.ranks;
    run.shard_degree = layout.shard_degree;
    run.micro_batches = layout.micro_batches;
    run.steps = 4;
    run.compute = run.master = at::kFloat;
    if (layout.lora) run.lora.emplace().target_modules = {"q_proj", "v_proj", "down_proj"};
    return run;
  }
};

TEST_P(NonfiniteSearch, GradientsAreFoundWhereTheyWerePlanted) {
  RunOptions run = options();
  run.write_gradients = false;  // hooks change what autograd brings
  const int last = GetParam().ranks - 1, final_unit = run.lora ? 2 : 3;
  // By step: none, one alone, two on different ranks.
  const std::vector<std::vector<Planted>> plan{{},
                                               {{last, 1, 1, inf_}},
                                               {{last, 1, 0, nan_}, {0, final_unit, 0, -inf_}, {0, 1, 1, nan_}},
                                               {{0, run.lora ? 1 : 0, 0, nan_}}};
  run.after_update = [&, steps = std::vector<int>(std::size_t(run.ranks))](int rank, const StepResult& found) mutable {
    const int step = steps[std::size_t(rank)]++;
    EXPECT_EQ(found.taken, plan[std::size_t(step)].empty()) << "rank " << rank << ", step " << step;
  };
  run_training(run, [&](Engine& engine, int rank, int step) {
    thread_local const std::vector<Planted>* now = nullptr;
    now = step < run.steps ? &plan[std::size_t(step)] : nullptr;
    if (step == 0) {
      for (const auto& planted_now : plan)
        for (const Planted& planted : planted_now)
          if (planted.rank == rank)
            parameter_of(engine, planted).tensor.register_hook([&, planted](const at::Tensor& gradient) {
              at::Tensor changed = gradient.clone(at::MemoryFormat::Contiguous);
              if (now == &planted_now) changed.view(-1)[changed.numel() - 1] = planted.value;
              return changed;
            });
      return;
    }
    const auto found = nonfinite_gradients(engine);
    const std::vector<Planted>& planted = plan[std::size_t(step - 1)];
    ASSERT_EQ(found.has_value(), !planted.empty()) << "step " << step;
    EXPECT_FALSE(nonfinite_states(engine)) << "nothing was updated";
    if (planted.empty()) return;
    EXPECT_EQ(found->first, place_of(engine, planted.front())) << found->describe();
    EXPECT_EQ(found->last, place_of(engine, planted[planted.size() > 1 ? 1 : 0])) << found->describe();
  });
}

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const int stage : {0, 1, 2, 3})
    for (const int ranks : {1, 2, 4}) {
      const std::string name = "Stage" + std::to_string(stage) + "x" + std::to_string(ranks);
      all.push_back({name, stage, ranks, 0, 1, false});
      all.push_back({name + "Accumulating", stage, ranks, 0, 2, false});
      all.push_back({name + "Lora", stage, ranks, 0, 1, true});
    }
  for (const int stage : {1, 2, 3}) all.push_back({"Hybrid" + std::to_string(stage), stage, 4, 2, 2, false});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Layouts, NonfiniteSearch, ::testing::ValuesIn(layouts()),
                         [](const auto& info) { return info.param.name; });

TEST(NonfiniteStates, EveryArrayOfEveryOptimizerIsLookedAt) {
  for (const OptimizerOptions& optimizer : every_optimizer())
    for (const auto& [stage, compute] : {std::pair{0, at::kFloat}, {1, at::kBFloat16}, {3, at::kBFloat16}}) {
      RunOptions run;
      run.config = small_config(false);
      run.config.hidden_size = 72;  // tensors large enough for states of 8 bits
      run.config.intermediate_size = 80;
      run.stage = stage;
      run.ranks = 2;
      run.steps = 1;
      run.compute = compute;
      run.master = at::kFloat;
      run.optimizer = optimizer;
      int arrays = 0;
      run_training(run, [&](Engine& engine, int rank, int step) {
        if (step == 0) return;
        EXPECT_FALSE(nonfinite_states(engine)) << optimizer.name;
        for (const auto& group : engine.groups())
          for (const auto& shard : group->states())
            for (std::size_t s = 0; s < shard->store().states().size(); ++s) {
              if (!at::isFloatingType(shard->store().states()[s].type)) continue;
              arrays += rank == 0;
              at::Tensor number, kept;
              std::string name;
              // On the last rank that holds a part.
              const auto has = all_gather_number(engine.host(), shard->numel() > 0);
              if (has[std::size_t(rank)] && (rank == 1 || !has[1]))
                shard->store().for_each_chunk(StateAccess::read_write, [&](const StateChunk& chunk) {
                  const auto slices = shard->layout().slices(shard->begin() + chunk.begin, chunk.end - chunk.begin);
                  if (slices.empty()) return;
                  name = shard->layout().spec(slices.back().tensor).name;
                  const std::int64_t grain = shard->store().states()[s].grain,
                                     last = slices.back().range_begin + slices.back().count - 1;
                  number = shard->view(chunk, chunk.begin, chunk.end - chunk.begin)[s].narrow(0, last / grain, 1);
                });
              if (number.defined()) {
                kept = number.clone();
                number.fill_(inf_);
              }
              const auto found = nonfinite_states(engine);
              if (number.defined()) number.copy_(kept);
              ASSERT_TRUE(found.has_value()) << optimizer.name << ", state " << s;
              EXPECT_EQ(found->first, found->last);
              if (number.defined()) {
                EXPECT_EQ(found->first.name, name);
              }
            }
        if (rank == 0 && engine.statistics(0).all_kept().numel() > 0) {
          const at::Tensor number = engine.statistics(0).all_kept().narrow(0, 0, 1), kept = number.clone();
          number.fill_(nan_);
          ++arrays;
          EXPECT_TRUE(nonfinite_states(engine)) << optimizer.name;
          number.copy_(kept);
        } else if (engine.statistics(0).all_kept().numel() > 0) {
          EXPECT_TRUE(nonfinite_states(engine)) << optimizer.name;
        }
        EXPECT_FALSE(nonfinite_states(engine)) << optimizer.name;
      });
      EXPECT_GT(arrays, 0) << optimizer.name;
    }
}

constexpr std::int64_t vocabulary = 7, hidden = 32;

Parameter plain(const std::string& name, std::vector<std::int64_t> shape) {
  Parameter parameter;
  parameter.parts = {{name, std::move(shape)}};
  return parameter;
}

class Lookup final : public Unit {
 public:
  Lookup() : Unit("lookup") { parameters_ = {plain("lookup", {vocabulary, hidden})}; }
  at::Tensor forward(const at::Tensor&, const ForwardContext& context) override {
    return at::embedding(parameters_[0].tensor, context.batch->ids);
  }
};

/// Adds to the loss what the gradient does not see.
class Head final : public Unit {
 public:
  explicit Head(const double& extra) : Unit("head"), extra_(extra) { parameters_ = {plain("head", {hidden})}; }
  at::Tensor forward(const at::Tensor& x, const ForwardContext&) override {
    return (x * parameters_[0].tensor).sum() + extra_;
  }

 private:
  const double& extra_;
};

/// Such a loss alone has finite gradients, so the step would be taken.
TEST(NonfiniteLoss, OnOneRankShowsInTheGlobalNormAtEveryStage) {
  for (const int stage : {0, 1, 2, 3})
    for (const int degree : {0, 2})
      SimWorld(4).run([&](Communicator& communicator, int rank) {
        double extra = 0;
        Lookup lookup;
        Head head(extra);
        EngineOptions options;
        options.plan = ShardPlan::for_stage(stage);
        options.precision = {at::kFloat, at::kFloat, at::kFloat, at::kFloat};
        Mesh mesh(communicator, MeshShape::hybrid(4, degree));
        Engine engine({&lookup, &head}, mesh, options);
        RandomWeights weights({{{"lookup", {vocabulary, hidden}}, Init::normal, 0.5}, {{"head", {hidden}}, Init::ones}},
                              1);
        engine.load(weights);
        for (const auto& [bad_rank, value] : {std::pair{-1, 0.0}, {2, inf_}, {0, nan_}, {3, -inf_}, {-1, 0.0}}) {
          extra = rank == bad_rank ? value : 0;
          const Batch batch{at::full({1, 3}, rank, at::kLong), at::zeros({1, 3}, at::kLong), {}, {}};
          ForwardContext context;
          context.batch = &batch;
          ChainPass pass(engine.chain_run(), context, {});
          pass.backward(0.25);
          const at::Tensor loss = pass.result().detach().to(at::kDouble);
          EXPECT_EQ(engine.update({.lr = 0.01}, loss).wait().taken, bad_rank < 0)
              << stage << ", " << rank << ", " << value;
        }
      });
}

// In a base under adapters, at each stage: in an fp32 base it is found; 4-bit blocks are not searched.
TEST(NonfiniteFrozen, IsFoundInTheBase) {
  for (const int stage : {0, 1, 3})
    for (const bool quantized : {false, true}) {
      RunOptions run;
      run.config = small_config(false);
      run.compute = run.master = at::kFloat;
      run.stage = stage;
      run.ranks = 2;
      run.steps = 0;
      run.lora.emplace();
      if (quantized) run.frozen = FrozenFormat::in_nf4(false);
      run_training(run, [&](Engine& engine, int rank, int) {
        EXPECT_FALSE(nonfinite_frozen(engine));
        for (const auto& group : engine.groups())
          if (!group->spec().trainable && group->spec().unit == 1 && rank == 1) {
            const ShardLease rest = group->weights().at_rest(true);
            if (at::isFloatingType(rest.tensor().scalar_type())) group->weights().own_of(rest.tensor())[0] = inf_;
          }
        const auto found = nonfinite_frozen(engine);
        ASSERT_EQ(found.has_value(), !quantized) << stage;
        if (found) EXPECT_EQ(found->first.unit, 1);
        EXPECT_FALSE(nonfinite_states(engine));
      });
    }
}

}  // namespace nonfinite_search_test
}  // namespace zero::testing
