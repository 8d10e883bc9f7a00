// Terms that units add to the loss on the way. Their gradients are right at every stage, on any number of ranks, with
// recomputed blocks. Their figures are reported.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "comm/sim/sim_world.h"
#include "models/initial_weights.h"
#include "models/loss_terms.h"
#include "zero/core/engine.h"
#include "zero/core/gradient_accumulation.h"

namespace zero::testing {
namespace loss_terms_test {

constexpr std::int64_t vocabulary = 11, width = 6, experts = 3, length = 5, batch_rows = 8;

Parameter matrix(const std::string& name, std::vector<std::int64_t> shape) { return {{{name, std::move(shape)}}}; }

class Lookup final : public Unit {
 public:
  Lookup() : Unit("lookup") { parameters_ = {matrix("lookup", {vocabulary, width})}; }
  at::Tensor forward(const at::Tensor&, const ForwardContext& context) override {
    return at::embedding(parameters_[0].tensor, context.batch->ids);
  }
};

/// Experts that every token takes by their probabilities, and a term that is least where all are taken alike.
at::Tensor mixed(const at::Tensor& x, const at::Tensor& router, const at::Tensor& weights, at::Tensor& balance) {
  const at::Tensor share = at::matmul(x, router.t()).softmax(-1);
  balance = share.square().sum() * 0.3;
  return x + (at::einsum("btd,edo->bteo", {x, weights}).tanh() * share.unsqueeze(-1)).sum(2);
}

class Experts final : public Unit {
 public:
  explicit Experts(const std::string& name) : Unit(name) {
    parameters_ = {matrix(name + ".router", {experts, width}), matrix(name + ".experts", {experts, width, width})};
  }
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) override {
    at::Tensor balance;
    const at::Tensor y = mixed(x, parameters_[0].tensor, parameters_[1].tensor, balance);
    return context.terms ? context.terms->add(y, "balance", balance) : y;
  }
};

class Head final : public Unit {
 public:
  Head() : Unit("head") { parameters_ = {matrix("head", {vocabulary, width})}; }
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) override {
    return at::cross_entropy_loss(at::matmul(x, parameters_[0].tensor.t()).view({-1, vocabulary}),
                                  context.batch->targets.view(-1), {}, at::Reduction::Sum);
  }
};

std::vector<InitialTensor> all_tensors() {
  std::vector<InitialTensor> tensors{{{"lookup", {vocabulary, width}}, Init::normal, 0.5},
                                     {{"head", {vocabulary, width}}, Init::normal, 0.5}};
  for (const std::string name : {"a", "b"}) {
    tensors.push_back({{name + ".router", {experts, width}}, Init::normal, 0.5});
    tensors.push_back({{name + ".experts", {experts, width, width}}, Init::normal, 0.5});
  }
  return tensors;
}

Batch rows_of(std::int64_t first, std::int64_t count) {
  const at::Tensor all =
      (at::arange(batch_rows * (length + 1), at::kLong) * 7).remainder(vocabulary).view({batch_rows, -1});
  Batch batch;
  batch.ids = all.narrow(0, first, count).narrow(1, 0, length).contiguous();
  batch.targets = all.narrow(0, first, count).narrow(1, 1, length).contiguous();
  return batch;
}

struct Trained {
  double loss = 0, balance = 0, evaluated = 0;  // sums over the batch
  std::map<std::string, at::Tensor> gradients, weights;
};

constexpr double scale = 1.0 / (batch_rows * length);

Trained train(int stage, int ranks, int micro_batches, int recompute_every) {
  Trained result;
  SimWorld(ranks).run([&](Communicator& communicator, int rank) {
    Mesh mesh(communicator);
    Lookup lookup;
    Experts a("a"), b("b");
    Head head;
    EngineOptions options;
    options.plan = ShardPlan::for_stage(stage);
    options.precision = {at::kDouble, at::kDouble, at::kDouble, at::kDouble};
    options.recompute_every = recompute_every;
    Engine engine({&lookup, &a, &b, &head}, mesh, options);
    RandomWeights weights(all_tensors(), 3);
    engine.load(weights);
    engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) {
      if (rank == 0) result.weights[spec.name] = value.clone();
    });
    const std::int64_t own = batch_rows / ranks / micro_batches;
    LossFigures figures;
    const auto context_of = [&](std::int64_t m, Batch& batch) {
      batch = rows_of((m * ranks + rank) * own, own);
      ForwardContext context;
      context.batch = &batch;
      context.training = true;
      return context;
    };
    const at::Tensor loss = accumulate_gradients(engine, micro_batches, scale, context_of, nullptr, &figures);
    engine.export_gradients([&](const TensorSpec& spec, const at::Tensor& value) {
      if (rank == 0) result.gradients[spec.name] = value.clone();
    });
    ASSERT_EQ(figures.size(), 1u) << "both units and all micro-batches have one name";
    Batch batch;
    ForwardContext context = context_of(0, batch);
    context.training = false;
    const at::Tensor sums = at::stack({loss.sum(), figures[0].second, engine.evaluate(context).to(at::kDouble)});
    communicator.all_reduce(sums, {at::kDouble, false});
    if (rank == 0) {
      result.loss = sums[0].item<double>();
      result.balance = sums[1].item<double>();
      result.evaluated = sums[2].item<double>();
    }
  });
  return result;
}

/// By autograd, with the weights of `start`.
Trained alone(const Trained& start) {
  std::map<std::string, at::Tensor> leaf;
  std::vector<std::string> names;
  std::vector<at::Tensor> leaves;
  for (const auto& [name, value] : start.weights) {
    leaf[name] = value.to(at::kDouble).clone().set_requires_grad(true);
    names.push_back(name);
    leaves.push_back(leaf[name]);
  }
  const Batch batch = rows_of(0, batch_rows);
  at::Tensor of_a, of_b;
  at::Tensor x = mixed(at::embedding(leaf["lookup"], batch.ids), leaf["a.router"], leaf["a.experts"], of_a);
  x = mixed(x, leaf["b.router"], leaf["b.experts"], of_b);
  const at::Tensor alone = at::cross_entropy_loss(at::matmul(x, leaf["head"].t()).view({-1, vocabulary}),
                                                  batch.targets.view(-1), {}, at::Reduction::Sum);
  const at::Tensor loss = alone + of_a + of_b;
  const auto grads = torch::autograd::grad({loss * scale}, leaves);
  Trained result{loss.item<double>(), (of_a + of_b).item<double>(), alone.item<double>(), {}, {}};
  for (std::size_t i = 0; i < names.size(); ++i) result.gradients[names[i]] = grads[i];
  return result;
}

TEST(LossTerms, TrainAsInOneGraph) {
  const Trained right = alone(train(0, 1, 1, 0));
  EXPECT_GT(right.balance, 1);
  for (const int stage : {0, 1, 2, 3})
    for (const int ranks : {1, 2})
      for (const int micro_batches : {1, 2})
        for (const int recompute_every : {0, 1}) {
          SCOPED_TRACE(::testing::Message() << "stage " << stage << ", ranks " << ranks << ", micro-batches "
                                            << micro_batches << ", recompute " << recompute_every);
          const Trained mine = train(stage, ranks, micro_batches, recompute_every);
          EXPECT_NEAR(mine.loss, right.loss, 1e-10);
          EXPECT_NEAR(mine.balance, right.balance, 1e-10) << "a unit that runs again adds nothing";
          if (micro_batches == 1) EXPECT_NEAR(mine.evaluated, right.evaluated, 1e-10) << "no term without a backward";
          ASSERT_EQ(mine.gradients.size(), right.gradients.size());
          for (const auto& [name, gradient] : right.gradients)
            EXPECT_LT((mine.gradients.at(name) - gradient).abs().max().item<double>(), 1e-13) << name;
        }
}

}  // namespace loss_terms_test
}  // namespace zero::testing
