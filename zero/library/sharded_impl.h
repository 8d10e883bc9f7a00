#pragma once
// What a ShardedModel is made of.
#include <memory>
#include <optional>

#include "comm/mesh/mesh.h"
#include "models/formats/safetensors.h"
#include "zero/library/include/zero/sharded.h"
#include "zero/modules/sharded_module.h"

namespace zero {

/// Where a step stands that micro-batches add to.
struct StepProgress {
  int micro_batches = 1;  // of the step
  int done = 0;           // backward passes so far
  bool guarded = false;   // an Accumulation lives
  bool weighted = false;  // micro-batches have weights
  double weight = 0;      // of this process's micro-batches so far; without weights each counts 1

  bool is_last() const { return done + 1 == micro_batches; }
  bool is_complete() const { return done == micro_batches; }
};

struct ShardedModel::Impl {
  std::shared_ptr<torch::nn::Module> module;
  World world;
  ShardOptions options;
  Mesh mesh;
  std::unique_ptr<ShardedModule> sharded;  // null: nothing is divided yet
  OptimizerOptions optimizer;
  bool trains = false;
  double max_norm = 0;
  StepProgress progress;
  bool draws_are_checked = false;
  std::unique_ptr<SafetensorsFile> initial_file;  // of a module on Meta that is not divided yet
  bool skips = false;                             // the last step was skipped

  Impl(std::shared_ptr<torch::nn::Module> module, const World& world, const ShardOptions& options);
  /// Divides the states, or the parameters alone where the model is not trained. Collective.
  void divide();
  StatesOptions states_options(at::ScalarType parameters) const;
  /// A number from torch's generator, of a module that draws from it when it is divided; 0: it does not.
  std::int64_t seed_of_deferred() const;
  /// Of a module on Meta: from its file or its construction; buffers have theirs afterwards.
  std::unique_ptr<WeightSource> values_of_deferred(const ModuleUnits& units, std::uint64_t seed);
  /// Throws InputError that names the call where there is no optimizer.
  ShardedModule& divided(const char* call) const;
  void backward(const torch::Tensor& loss, std::optional<double> weight);
  Step step(double lr);
  /// Warns of the first of the steps in a row that are not taken.
  void tell_skipped(const StepResult& result);
  /// The module's units as this process may shard them. InputError where it may not.
  ModuleUnits checked_units() const;
  /// InputError where processes have other options, another optimizer or parameters of another type than the first one.
  /// Collective.
  void check_same_settings(at::ScalarType parameters);
  /// total_weight(). InputError where processes step otherwise than the first one; the step is given up. Collective.
  double agree_on_step(double lr);
  /// Of the micro-batches of the step, over all processes. InputError where it is 0; the step is given up. Collective.
  double total_weight();
  double above_0(double weight);
  /// Names what checkpoints hold besides the states: the buffers as they are now.
  void keep_buffers();
  /// After a checkpoint was read: buffers whose bytes are not one row of memory get theirs.
  void take_buffers();
  /// Gives up the step's micro-batches so far.
  void drop_step();
  /// As ShardedOptimizer::states() and set_states().
  NamedTensors optimizer_states(const std::string& parameter) const;
  void set_optimizer_states(const std::string& parameter, const NamedTensors& named) const;
  /// As ShardedModel::stage().
  int stage() const;
};

/// On the ranks by which modules gather: where another process computes meanwhile, both calls are told of at once. On
/// those that files are agreed on by each would wait for the other until the deadline. Collective.
void meet(const World& world, Phase phase);

}  // namespace zero
