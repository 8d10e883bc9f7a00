// Checks that the core supports tensor parallelism, with the smallest such model: matrices cut along rows and columns
// over an axis of the mesh, and parameters that all ranks of the axis hold (Shoeybi et al. 2019). Losses, norms and
// weights are those of one rank.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <map>

#include "base/error.h"
#include "comm/sim/sim_world.h"
#include "models/initial_weights.h"
#include "zero/core/engine.h"
#include "zero/core/gradient_accumulation.h"

namespace zero::testing {
namespace {

constexpr std::int64_t vocabulary = 24, hidden = 12, inner = 20;

at::Tensor summed(const at::Tensor& x, Communicator& ranks) {
  const at::Tensor sum = x.contiguous().clone();
  ranks.all_reduce(sum, {at::kDouble, false});
  return sum;
}

/// The input of cut matrices: its gradient is the sum over their ranks.
struct Enter : public torch::autograd::Function<Enter> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, Communicator* ranks) {
    context->saved_data["ranks"] = reinterpret_cast<std::int64_t>(ranks);
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {summed(gradients[0], *reinterpret_cast<Communicator*>(context->saved_data["ranks"].toInt())), {}};
  }
};

/// The sum of the ranks' results.
struct Leave : public torch::autograd::Function<Leave> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x, Communicator* ranks) {
    return summed(x, *ranks);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0], {}};
  }
};

Parameter whole(const std::string& name, std::vector<std::int64_t> shape) { return {{{name, std::move(shape)}}}; }

Parameter slice(const std::string& name, std::vector<std::int64_t> full, int dim, const Mesh& mesh) {
  const int ranks = mesh.size(MeshAxis::tensor), place = mesh.index(MeshAxis::tensor);
  const std::int64_t size = full[std::size_t(dim)], own = size / ranks;
  TensorSpec spec{name, std::move(full), TensorCut{dim, place * own, size}};
  spec.shape[std::size_t(dim)] = own;
  return {{spec}};
}

class Lookup final : public Unit {
 public:
  Lookup() : Unit("lookup") { parameters_ = {whole("lookup", {vocabulary, hidden})}; }
  at::Tensor forward(const at::Tensor&, const ForwardContext& context) override {
    return at::embedding(parameters_[0].tensor, context.batch->ids);
  }
};

class Mlp final : public Unit {
 public:
  Mlp(const std::string& name, Mesh& mesh) : Unit(name), ranks_(mesh.along(MeshAxis::tensor)) {
    // Two matrices by rows side by side, as gate and up: parts of one parameter.
    Parameter in = slice(name + ".gate", {inner, hidden}, 0, mesh), up = slice(name + ".up", {inner, hidden}, 0, mesh);
    in.parts.push_back(up.parts.front());
    parameters_ = {whole(name + ".norm", {hidden}), in, slice(name + ".down", {hidden, inner}, 1, mesh)};
  }
  at::Tensor forward(const at::Tensor& x, const ForwardContext&) override {
    const at::Tensor in = Enter::apply(x * parameters_[0].tensor, &ranks_);
    const auto gate_up = at::matmul(in, parameters_[1].tensor.t()).chunk(2, -1);
    return x + Leave::apply(at::matmul(at::silu(gate_up[0]) * gate_up[1], parameters_[2].tensor.t()), &ranks_);
  }

 private:
  Communicator& ranks_;
};

class Head final : public Unit {
 public:
  Head() : Unit("head") { parameters_ = {whole("head", {vocabulary, hidden})}; }
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) override {
    const at::Tensor logits = at::matmul(x, parameters_[0].tensor.t()).view({-1, vocabulary});
    return at::cross_entropy_loss(logits, context.batch->targets.view(-1), {}, at::Reduction::Sum);
  }
};

std::vector<InitialTensor> full_tensors() {
  std::vector<InitialTensor> tensors{{{"lookup", {vocabulary, hidden}}, Init::normal, 0.5},
                                     {{"head", {vocabulary, hidden}}, Init::normal, 0.5}};
  for (const std::string name : {"a", "b"}) {
    tensors.push_back({{name + ".norm", {hidden}}, Init::ones});
    tensors.push_back({{name + ".gate", {inner, hidden}}, Init::normal, 0.5});
    tensors.push_back({{name + ".up", {inner, hidden}}, Init::normal, 0.5});
    tensors.push_back({{name + ".down", {hidden, inner}}, Init::normal, 0.5});
  }
  return tensors;
}

struct Trained {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> weights, gradients;
};

Trained train(const MeshShape& shape, int stage, int micro_batches, const std::string& optimizer = "adamw") {
  constexpr std::int64_t rows = 8, length = 5;
  Trained result;
  SimWorld(shape.ranks()).run([&](Communicator& ranks, int rank) {
    Mesh mesh(ranks, shape);
    Lookup lookup;
    Mlp a("a", mesh), b("b", mesh);
    Head head;
    EngineOptions options;
    options.plan = ShardPlan::for_stage(stage);
    options.precision = {at::kDouble, at::kDouble, at::kDouble, at::kDouble};
    options.optimizer.name = optimizer;
    Engine engine({&lookup, &a, &b, &head}, mesh, options);
    RandomWeights weights(full_tensors(), 3);
    engine.load(weights);
    const std::int64_t own = rows / mesh.size(axes::rows) / micro_batches;
    for (int step = 0; step < 6; ++step) {
      const at::Tensor all = (at::arange(rows * (length + 1), at::kLong) * 7 + step * 5).remainder(23).view({rows, -1});
      Batch batch;
      const at::Tensor loss = accumulate_gradients(engine, micro_batches, 1.0 / (rows * length), [&](std::int64_t m) {
        const at::Tensor part = all.narrow(0, (m * mesh.size(axes::rows) + mesh.index(axes::rows)) * own, own);
        batch.ids = part.narrow(1, 0, length).contiguous();
        batch.targets = part.narrow(1, 1, length).contiguous();
        ForwardContext context;
        context.batch = &batch;
        context.training = true;
        return context;
      });
      if (step == 0)
        engine.export_gradients([&](const TensorSpec& spec, const at::Tensor& value) {
          if (rank == 0) result.gradients[spec.name] = value.clone();
        });
      const StepResult found = engine.update({.lr = 0.02, .max_norm = 0.5}, loss).wait();
      const at::Tensor total = at::full({1}, found.loss_sum(), at::kDouble);
      mesh.along(axes::tokens).all_reduce(total, {at::kDouble, false});
      if (rank != shape.ranks() - 1) continue;
      result.losses.push_back(total.item<double>());
      result.norms.push_back(found.norm);
    }
    engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) {
      if (rank == 0) result.weights[spec.name] = value.clone();
    });
  });
  return result;
}

void expect_near(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    ASSERT_EQ(value.sizes(), b.at(name).sizes()) << name;
    EXPECT_LT((value - b.at(name)).abs().max().item<double>(), 1e-12) << name;
  }
}

class TensorAxis : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(TensorAxis, TrainsAsOneRankDoes) {
  const auto [stage, micro_batches] = GetParam();
  const Trained one = train({}, 0, 1);
  EXPECT_LT(one.losses.back(), 0.9 * one.losses.front());
  for (const MeshShape& shape : {MeshShape{.tensor = 2}, MeshShape{.tensor = 4}, MeshShape{.shard = 2, .tensor = 2},
                                 MeshShape{.replicate = 2, .shard = 2, .tensor = 2}}) {
    SCOPED_TRACE(shape.describe());
    const Trained cut = train(shape, stage, micro_batches);
    for (std::size_t step = 0; step < one.losses.size(); ++step) {
      EXPECT_NEAR(cut.losses[step], one.losses[step], 1e-11 * one.losses[step]);
      EXPECT_NEAR(cut.norms[step], one.norms[step], 1e-12);
    }
    expect_near(cut.gradients, one.gradients);
    expect_near(cut.weights, one.weights);
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, TensorAxis, ::testing::Combine(::testing::Range(0, 4), ::testing::Values(1, 2)));

TEST(TensorAxis, RefusesOptimizersThatSeeWholeTensors) {
  for (const std::string name : {"muon", "adafactor", "prodigy", "adamw8bit"})
    EXPECT_THROW(train({.tensor = 2}, 1, 1, name), InputError) << name;
  for (const std::string name : {"sgd", "lion"}) EXPECT_FALSE(train({.tensor = 2}, 1, 1, name).losses.empty());
}

}  // namespace
}  // namespace zero::testing
