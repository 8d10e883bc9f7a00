#pragma once
// The implementation of a ShardedModel.
#include <memory>
#include <optional>

#include "comm/mesh/mesh.h"
#include "models/formats/safetensors.h"
#include "zero/library/include/zero/sharded.h"
#include "zero/modules/sharded_module.h"

namespace zero {

/// The progress of a step that accumulates micro-batches.
struct StepProgress {
  int micro_batches = 1;  // in the step
  int done = 0;           // backward passes done
  bool guarded = false;   // true while an Accumulation lives
  bool weighted = false;  // true if micro-batches have weights
  double weight = 0;      // sum over this process's micro-batches so far; each counts 1 without weights

  bool is_last() const { return done + 1 == micro_batches; }
  bool is_complete() const { return done == micro_batches; }
};

struct ShardedModel::Impl {
  std::shared_ptr<torch::nn::Module> module;
  World world;
  ShardOptions options;
  Mesh mesh;
  std::unique_ptr<ShardedModule> sharded;  // null: not sharded yet
  OptimizerOptions optimizer;
  bool trains = false;
  double max_norm = 0;
  StepProgress progress;
  bool draws_are_checked = false;
  std::unique_ptr<SafetensorsFile> initial_file;  // of a Meta module that is not sharded yet
  bool skips = false;                             // true if the last step was skipped

  Impl(std::shared_ptr<torch::nn::Module> module, const World& world, const ShardOptions& options);
  /// Shards the model states, or only the parameters if the model is not trained. Collective.
  void divide();
  StatesOptions states_options(at::ScalarType parameters) const;
  /// Returns a random number from torch's generator if the module will draw values when it is sharded, otherwise 0.
  std::int64_t seed_of_deferred() const;
  /// Returns the values of a Meta module, from its file or its construction. Also fills the module's buffers.
  std::unique_ptr<WeightSource> values_of_deferred(const ModuleUnits& units, std::uint64_t seed);
  /// Returns the sharded module. Throws InputError that names `call` if there is no optimizer.
  ShardedModule& divided(const char* call) const;
  void backward(const torch::Tensor& loss, std::optional<double> weight);
  Step step(double lr);
  /// Warns at the first of consecutive skipped steps.
  void tell_skipped(const StepResult& result);
  /// Returns the module's units. Throws InputError if this process may not shard them.
  ModuleUnits checked_units() const;
  /// Throws InputError if a process differs from rank 0 in options, optimizer or parameter type. Collective.
  void check_same_settings(at::ScalarType parameters);
  /// Returns total_weight(). If processes take the step with different arguments, throws InputError and discards the
  /// step. Collective.
  double agree_on_step(double lr);
  /// Returns the weight summed over the step's micro-batches and all processes. If it is 0, throws InputError and
  /// discards the step. Collective.
  double total_weight();
  double above_0(double weight);
  /// Registers the module's current buffers, which checkpoints hold in addition to the states.
  void keep_buffers();
  /// Copies restored values into the module's buffers that are not contiguous. Call it after a checkpoint was read.
  void take_buffers();
  /// Discards the step's micro-batches so far.
  void drop_step();
  /// See ShardedOptimizer::states() and set_states().
  NamedTensors optimizer_states(const std::string& parameter) const;
  void set_optimizer_states(const std::string& parameter, const NamedTensors& named) const;
  /// See ShardedModel::stage().
  int stage() const;
};

/// Checks that all processes make the same call, on the communicator that gathers weights. A process that runs forward
/// or backward instead is thus reported at once. On the communicator for files, each side would wait for the deadline.
/// Collective.
void meet(const World& world, Phase phase);

}  // namespace zero
