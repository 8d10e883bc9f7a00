#include "zero/core/states/state_shard.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "zero/optim/optimizer_table.h"
#include "zero/optim/state_storage.h"

namespace zero {
namespace {

const std::vector<TensorSpec> tensors{{"a", {100'000}}, {"b", {63}}, {"c", {50'001}}};
constexpr StateStorage both{.bf16_states = true, .split_master = true, .seed = 5};

/// Trains one rank's part of the tensors. Weights and gradients of all are given.
class Trained {
 public:
  Trained(const Optimizer& optimizer, const FlatLayout& flat, const FlatRange& own, const at::Tensor& master)
      : weights_(at::empty({own.numel}, at::kBFloat16)) {
    std::vector<StateTensor> all(tensors.size());
    for (int t = 0; t < int(all.size()); ++t) all[std::size_t(t)].tensor = t;
    std::vector<StateSpec> specs = stored_states(optimizer, at::kFloat, both);
    specs.insert(specs.begin(), {"remainder", at::kShort});
    shard_ = std::make_unique<StateShard>(
        optimizer, StateLayout(flat, all, 1), own, specs,
        [&](std::int64_t elements) { return std::make_unique<ResidentStateStore>(elements, specs); }, at::kCPU,
        both.seed);
    visit([&](const StateSegment& part, const std::vector<at::Tensor>& states, const at::Tensor& weights) {
      split_master(master.narrow(0, own.begin + part.flat_begin, part.count), weights, states[0]);
    });
  }

  void step(const StepFactors& factors, const at::Tensor& gradient) {
    shard_->update(UpdateContext{factors}, weights_, gradient);
  }

  /// Adds masters and states to flat vectors of all.
  void put(const FlatRange& own, const std::vector<at::Tensor>& all) {
    visit([&](const StateSegment& part, const std::vector<at::Tensor>& states, const at::Tensor& weights) {
      join_master(weights, states[0], all[0].narrow(0, own.begin + part.flat_begin, part.count));
      for (std::size_t s = 1; s < states.size(); ++s)
        all[s].narrow(0, own.begin + part.flat_begin, part.count).copy_(states[s]);
    });
  }

 private:
  template <class Visit>
  void visit(const Visit& visit) {
    shard_->store().for_each_chunk(StateAccess::read_write, [&](const StateChunk& chunk) {
      for (const StateSegment& part : shard_->segments(chunk.begin, chunk.end))
        visit(part, shard_->view(chunk, part.begin, part.count), weights_.narrow(0, part.flat_begin, part.count));
    });
  }

  at::Tensor weights_;
  std::unique_ptr<StateShard> shard_;
};

// The rule on all elements in fp32, and then rounding by tensor.
TEST(StateShard, StoresWhatTheRuleMakesOfStatesInFewerBytes) {
  const OptimizerRow& row = optimizer_row("adamw");
  const auto optimizer = row.make(row.defaults);
  const FlatLayout flat({{tensors[0]}, {tensors[1]}, {tensors[2]}}, 2);
  const std::int64_t n = flat.numel();
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const at::Tensor start = at::randn({n}, generator, at::kFloat);
  const std::vector<at::Tensor> gradients{at::randn({n}, generator, at::kFloat), at::randn({n}, generator, at::kFloat)};

  const std::vector<at::Tensor> expected{start.clone(), at::zeros({n}), at::zeros({n})};
  const std::vector<StateSpec> specs = optimizer->states(at::kFloat);
  std::vector<StepFactors> factors;
  for (int step = 1; step <= 2; ++step) {
    factors.push_back(step_factors(row.defaults, step, 0.01, 1));
    factors.back().weight_decay = 0;
    const at::Tensor& gradient = gradients[std::size_t(step - 1)];
    optimizer->update({expected[0], {expected[1], expected[2]}, gradient, {}}, UpdateContext{factors.back()});
    for (std::size_t s = 0; s < specs.size(); ++s)
      for (const FlatTensor& tensor : flat.tensors()) {
        const at::Tensor state = expected[s + 1].narrow(0, tensor.offset, tensor.spec.numel()),
                         rounded = at::empty({tensor.spec.numel()}, at::kBFloat16);
        round_stochastically(state, rounded, {both.seed, step, rounding_stream(tensor.spec.name, specs[s].name)}, 0);
        state.copy_(rounded);
      }
  }

  const int before = at::get_num_threads();
  for (const int threads : {1, 3})
    for (const int ranks : {1, 2}) {
      at::set_num_threads(threads);
      const std::vector<at::Tensor> found{at::zeros({n}), at::zeros({n}), at::zeros({n})};
      for (int rank = 0; rank < ranks; ++rank) {
        const FlatRange own{rank * n / ranks, n / ranks};
        Trained trained(*optimizer, flat, own, start);
        for (std::size_t step = 0; step < factors.size(); ++step)
          trained.step(factors[step], gradients[step].narrow(0, own.begin, own.numel));
        trained.put(own, found);
      }
      for (std::size_t s = 0; s < expected.size(); ++s)
        for (const FlatTensor& tensor : flat.tensors()) {
          const auto of = [&](const at::Tensor& all) { return all.narrow(0, tensor.offset, tensor.spec.numel()); };
          EXPECT_TRUE(at::equal(of(found[s]), of(expected[s])))
              << tensor.spec.name << ", state " << s << ", " << threads << " threads, " << ranks << " ranks";
        }
    }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace zero
