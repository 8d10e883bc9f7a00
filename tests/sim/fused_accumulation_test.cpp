// Matrix products that write gradients where groups sum them, or add to those of earlier micro-batches. A step gives
// the same result as autograd's way, however else the weights are used and whatever becomes of a pass.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/fake/fake_communicator.h"
#include "models/families/families.h"
#include "models/gradient_place.h"
#include "models/initial_weights.h"
#include "models/nn/linear.h"
#include "tests/sim/training_run.h"
#include "zero/core/chain.h"

namespace zero::testing {
namespace fused_accumulation_test {

struct Case {
  std::string name;
  bool tied = false;
  int recompute_every = 0;
  bool recompute_attention = false, lora = false, dora = false, ragged = false;
  int under_way = 1;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

RunOptions options_of(const Case& c, int stage, int micro_batches) {
  RunOptions run;
  run.config = small_config(c.tied);
  run.stage = stage;
  run.ranks = 2;
  run.micro_batches = micro_batches;
  run.steps = 3;
  run.recompute_every = c.recompute_every;
  run.recompute_attention = c.recompute_attention;
  run.ragged = c.ragged;
  run.under_way = c.under_way;
  if (!c.lora) return run;
  run.lora.emplace().target_modules = {"q_proj", "up_proj"};
  run.lora->modules_to_save = {"lm_head", "norm"};
  run.lora->use_dora = c.dora;
  return run;
}

class FusedAccumulation : public ::testing::TestWithParam<Case> {};

TEST_P(FusedAccumulation, WritesTheBitsOfAutograd) {
  for (const int stage : {0, 1, 2, 3})
    for (const int micro_batches : {1, 3}) {
      if (GetParam().under_way > micro_batches) continue;
      for (const auto type : {at::kDouble, at::kBFloat16}) {
        RunOptions run = options_of(GetParam(), stage, micro_batches);
        run.compute = type;
        if (type == at::kBFloat16) run.master = at::kFloat;
        run.write_gradients = false;
        const RunResult by_autograd = run_training(run);
        run.write_gradients = true;
        EXPECT_EQ(largest_difference(run_training(run), by_autograd), 0) << stage << ", " << micro_batches << type;
      }
    }
}

// One micro-batch is the same product; sums of several are made in another order.
TEST_P(FusedAccumulation, TrainsAsAutogradDoes) {
  for (const int stage : {0, 1})
    for (const int micro_batches : {1, 3}) {
      if (GetParam().under_way > micro_batches) continue;
      RunOptions run = options_of(GetParam(), stage, micro_batches);
      run.write_gradients = false;
      const RunResult by_autograd = run_training(run);
      run.fuse_accumulation = true;
      const double difference = largest_difference(run_training(run), by_autograd);
      EXPECT_LE(difference, micro_batches == 1 ? 0 : 1e-12) << "stage " << stage << ", " << micro_batches;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Uses, FusedAccumulation,
    ::testing::Values(Case{.name = "plain"}, Case{.name = "tied", .tied = true},
                      Case{.name = "recomputed", .recompute_every = 1},
                      Case{.name = "half_recomputed", .recompute_every = 2},
                      Case{.name = "attention_recomputed", .recompute_attention = true},
                      Case{.name = "adapters_and_a_saved_head", .lora = true},
                      Case{.name = "dora_recomputed", .recompute_every = 1, .lora = true, .dora = true},
                      Case{.name = "ragged", .ragged = true}, Case{.name = "two_under_way", .under_way = 2}),
    [](const auto& info) { return info.param.name; });

/// Which of the blocks' matrices autograd brought a gradient for in a run: some, none or all.
std::string matrices_by_autograd(const RunOptions& given) {
  RunOptions run = given;
  run.steps = 1;
  int matrices = 0;
  std::vector<int> brought;
  run_training(run, [&](Engine& engine, int rank, int step) {
    if (rank > 0 || step > 0) return;
    for (std::size_t u = 1; u + 1 < engine.units().units.size(); ++u)
      for (const Parameter& parameter : engine.units().units[u]->parameters()) {
        if (parameter.tensor.dim() != 2) continue;
        brought.push_back(0);
        parameter.tensor.register_hook(
            [&brought, matrices](const at::Tensor& found) { brought[std::size_t(matrices)] |= int(found.defined()); });
        ++matrices;
      }
  });
  const auto found = std::count(brought.begin(), brought.end(), 1);
  return found == 0 ? "none" : found == matrices ? "all" : "some";
}

TEST(FusedAccumulationPath, IsTakenWhereGradientsAreHeldWholeAndNotInOrder) {
  RunOptions run = options_of({}, 0, 3);
  run.write_gradients = false;
  EXPECT_EQ(matrices_by_autograd(run), "all");
  run.fuse_accumulation = true;
  EXPECT_EQ(matrices_by_autograd(run), "none");
  run.recompute_every = 1;
  EXPECT_EQ(matrices_by_autograd(run), "none");
  run.compute = at::kBFloat16;
  run.master = at::kFloat;
  EXPECT_EQ(matrices_by_autograd(run), "none");
  run.compute = at::kFloat;
  run.micro_batches = 1;
  EXPECT_EQ(matrices_by_autograd(run), "none");
  run.gradient = at::kBFloat16;
  EXPECT_EQ(matrices_by_autograd(run), "all") << "no product rounds fp32 to bf16";
  run.gradient.reset();
  run.rows_in_order = 8;
  EXPECT_EQ(matrices_by_autograd(run), "all");
}

TEST(FusedAccumulationPath, WritesWhereTheTypeIsTheWeightsAndNothingElseIsSummed) {
  for (const int stage : {0, 1, 2, 3}) {
    const bool sharded = stage >= 2;
    RunOptions run = options_of({}, stage, 1);
    run.compute = run.gradient.emplace(at::kFloat);
    run.master = at::kFloat;
    EXPECT_EQ(matrices_by_autograd(run), "none") << stage;
    run.micro_batches = 3;
    EXPECT_EQ(matrices_by_autograd(run), sharded ? "none" : "all") << stage;
    run.rows_in_order = 2;
    EXPECT_EQ(matrices_by_autograd(run), "none") << stage;
    run.rows_in_order = 0;
    run.micro_batches = 1;
    run.compute = at::kBFloat16;
    EXPECT_EQ(matrices_by_autograd(run), sharded ? "none" : "all") << stage;
    run.gradient = at::kBFloat16;
    EXPECT_EQ(matrices_by_autograd(run), "none") << stage;
    run.overlap = true;
    EXPECT_EQ(matrices_by_autograd(run), sharded ? "all" : "none") << stage;
  }
}

/// Embeds nothing: x is its weight.
class Start final : public Unit {
 public:
  Start() : Unit("start") {
    parameters_.resize(1);
    parameters_[0].parts = {{"start", {5, 8}}};
  }
  at::Tensor forward(const at::Tensor&, const ForwardContext&) override { return parameters_[0].tensor.unsqueeze(0); }
};

/// One weight is used twice, one in a product and elsewhere, one by some micro-batches only.
class Uses final : public Unit {
 public:
  Uses() : Unit("uses") {
    for (const char* name : {"twice", "beside", "sometimes"}) {
      parameters_.emplace_back();
      parameters_.back().parts = {{name, {8, 8}}};
    }
  }
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) override {
    const auto weight = [&](int i) { return parameters_[std::size_t(i)].tensor; };
    at::Tensor y = linear(LinearInput::plain(x), weight(0));
    y = linear(LinearInput::plain(y), weight(0), x);
    y = linear(LinearInput::plain(y), weight(1)) * weight(1).sum();
    if (context.first_sample > 0) y = linear(LinearInput::plain(y), weight(2));
    return y.sin().sum();
  }
};

/// One rank's engine of the two, at stage 0.
struct Bench {
  explicit Bench(at::ScalarType compute, bool fuse) {
    EngineOptions options;
    options.plan = ShardPlan::for_stage(0);
    const at::ScalarType master = compute == at::kDouble ? at::kDouble : at::kFloat;
    options.precision = {compute, master, master, master};
    options.write_gradients = fuse;
    options.fuse_accumulation = fuse;
    engine.emplace(Chain{&start, &uses}, mesh, options);
    RandomWeights weights({{{"start", {5, 8}}, Init::normal, 0.3},
                           {{"twice", {8, 8}}, Init::normal, 0.3},
                           {{"beside", {8, 8}}, Init::normal, 0.3},
                           {{"sometimes", {8, 8}}, Init::normal, 0.3}},
                          1);
    engine->load(weights);
  }

  /// Gradients of a step with a micro-batch per entry of `all`. True entries use the optional weight.
  std::map<std::string, at::Tensor> gradients(const std::vector<bool>& all, double scale = 1) {
    for (std::size_t a = 0; a < all.size(); ++a) pass(all[a], {a == 0, a + 1 == all.size()})->backward(scale);
    std::map<std::string, at::Tensor> found;
    engine->export_gradients(
        [&](const TensorSpec& spec, const at::Tensor& value) { found[spec.name] = value.to(at::kDouble); });
    return found;
  }
  std::unique_ptr<ChainPass> pass(bool all, MicroBatch micro) {
    context.batch = &none;
    context.training = true;
    context.first_sample = all;
    return std::make_unique<ChainPass>(engine->chain_run(), context, micro);
  }

  Start start;
  Uses uses;
  FakeCommunicator alone{0, 1};
  Mesh mesh{alone};
  std::optional<Engine> engine;
  Batch none;
  ForwardContext context;
};

double difference(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (const auto& [name, value] : a)
    worst = std::max(worst, ((value - b.at(name)).norm() / (b.at(name).norm() + 1e-300)).item<double>());
  return worst;
}

const std::vector<std::vector<bool>> steps{
    {true, true, true}, {false, true, true}, {true, false, false}, {false, false, false}, {true}, {false}};

// Each step finds the sums of the one before.
TEST(FusedAccumulationGradients, AreThoseOfEveryUseOfAWeight) {
  Bench fused(at::kDouble, true), by_autograd(at::kDouble, false);
  for (const auto& step : steps) EXPECT_LT(difference(fused.gradients(step), by_autograd.gradients(step)), 1e-13);
}

TEST(FusedAccumulationGradients, Of16BitsAreNearThoseOfFp64) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    Bench fused(type, true), precise(at::kDouble, false);
    for (const auto& step : steps)
      EXPECT_LT(difference(fused.gradients(step), precise.gradients(step)), type == at::kHalf ? 4e-3 : 3e-2);
  }
}

// A fault in the middle of the second micro-batch, after some products were written.
TEST(FusedAccumulationGradients, LeaveNothingOfAPassThatFails) {
  Bench bench(at::kDouble, true), undisturbed(at::kDouble, true);
  bench.pass(true, {true, false})->backward(1);
  const auto hook = bench.start.parameters()[0].tensor.register_hook(
      [](const at::Tensor&) -> void { throw Error("the device is gone"); });
  const auto pass = bench.pass(true, {false, true});
  EXPECT_ANY_THROW(pass->backward(1));
  bench.start.parameters()[0].tensor.remove_hook(hook);
  for (const Unit* unit : {static_cast<Unit*>(&bench.start), static_cast<Unit*>(&bench.uses)})
    for (const Parameter& parameter : unit->parameters())
      EXPECT_EQ(GradientPlace::open_on(parameter.tensor), nullptr) << parameter.parts.front().name;
  for (const auto& step : steps) EXPECT_EQ(difference(bench.gradients(step), undisturbed.gradients(step)), 0);
}

// A loss that is not finite spoils its own step alone.
TEST(FusedAccumulationGradients, AreNotFiniteForOneStep) {
  Bench bench(at::kFloat, true), undisturbed(at::kFloat, true);
  const auto spoiled = bench.gradients({true, true}, std::numeric_limits<double>::infinity());
  for (const auto& [name, value] : spoiled) EXPECT_FALSE(value.isfinite().all().item<bool>()) << name;
  for (const auto& step : steps) EXPECT_EQ(difference(bench.gradients(step), undisturbed.gradients(step)), 0);
}

// A backward outside the engine's belongs to autograd alone.
TEST(FusedAccumulationGradients, AreAutogradsOutsideOfAPass) {
  Bench bench(at::kDouble, true);
  const auto before = bench.gradients({true});
  const at::Tensor weight = bench.uses.parameters()[0].tensor;
  linear(LinearInput::plain(at::ones({2, 3, 8}, at::kDouble)), weight).sum().backward();
  EXPECT_TRUE(weight.grad().defined());
  std::map<std::string, at::Tensor> after;
  bench.engine->export_gradients(
      [&](const TensorSpec& spec, const at::Tensor& value) { after[spec.name] = value.clone(); });
  EXPECT_EQ(difference(after, before), 0);
}

}  // namespace fused_accumulation_test
}  // namespace zero::testing
