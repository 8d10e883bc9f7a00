#include "benchmarks/unit_runner.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <optional>
#include <string>

#include "base/memory_tracker.h"
#include "zero/core/chain.h"
#include "zero/modules/sharded_module.h"

namespace zero {
namespace {

class ChainRunner final : public UnitRunner {
 public:
  ChainRunner(const Model& model, Mesh& mesh, const EngineOptions& options, WeightSource& weights)
      : engine_(chain_of(model), mesh, options) {
    engine_.load(weights);
  }

  void forward(const ForwardContext& context, MicroBatch micro) override {
    pass_.emplace(engine_.chain_run(), context, micro);
  }
  double backward(double scale) override {
    pass_->backward(scale);
    const double loss = pass_->result().item<double>();
    pass_.reset();
    return loss;
  }
  void update(double lr, double loss) override {
    engine_.update({.lr = lr, .max_norm = 0}, at::full({}, loss, at::kDouble)).wait();
  }

 private:
  Engine engine_;
  std::optional<ChainPass> pass_;
};

/// A unit's parameters as those of a module, with the source's values.
std::shared_ptr<torch::nn::Module> module_of(Unit& unit, WeightSource& weights) {
  auto module = std::make_shared<torch::nn::Module>(unit.name());
  for (Parameter& parameter : unit.parameters()) {
    const at::Tensor values = at::empty(parameter.shape());
    std::int64_t rows = 0;
    for (const TensorSpec& part : parameter.parts) {
      weights.read(part, 0, part.numel(), values.narrow(0, rows, part.shape[0]).view({-1}));
      rows += part.shape[0];
    }
    const std::string name = "parameter" + std::to_string(module->parameters(/*recurse=*/false).size());
    parameter.tensor = module->register_parameter(name, values, parameter.trainable);
  }
  return module;
}

class ModuleRunner final : public UnitRunner {
 public:
  ModuleRunner(const Model& model, Mesh& mesh, const EngineOptions& options, WeightSource& weights)
      : chain_(chain_of(model)), keep_inputs_(options.keep_inputs) {
    torch::nn::ModuleList units;
    for (Unit* unit : chain_) units->push_back(module_of(*unit, weights));
    for (Unit* unit : chain_)
      for (BorrowedParameter& borrowed : unit->borrowed())
        borrowed.tensor =
            chain_[std::size_t(borrowed.owner_unit)]->parameters()[std::size_t(borrowed.owner_parameter)].tensor;
    module_.register_module("units", units);
    sharded_.emplace(module_, ModuleUnits(module_), mesh, options);
  }

  void forward(const ForwardContext& context, MicroBatch micro) override {
    const CategoryScope scope(MemoryCategory::activations);
    context_ = context;
    context_.keep_inputs = keep_inputs_;
    micro_ = micro;
    at::Tensor x;
    for (Unit* unit : chain_) x = unit->forward(x, context_);
    loss_ = x;
  }
  double backward(double scale) override {
    sharded_->backward(loss_, 1, micro_);
    scale_ = scale;
    const double loss = loss_.item<double>();
    loss_.reset();
    return loss;
  }
  void update(double lr, double) override { sharded_->update({.lr = lr, .max_norm = 0, .loss_scale = 1 / scale_}); }

 private:
  Chain chain_;
  bool keep_inputs_;
  torch::nn::Module module_;
  std::optional<ShardedModule> sharded_;
  ForwardContext context_;
  MicroBatch micro_;
  at::Tensor loss_;
  double scale_ = 1;
};

}  // namespace

std::unique_ptr<UnitRunner> chain_runner(const Model& model, Mesh& mesh, const EngineOptions& options,
                                         WeightSource& weights) {
  return std::make_unique<ChainRunner>(model, mesh, options, weights);
}

std::unique_ptr<UnitRunner> module_runner(const Model& model, Mesh& mesh, const EngineOptions& options,
                                          WeightSource& weights) {
  return std::make_unique<ModuleRunner>(model, mesh, options, weights);
}

}  // namespace zero
