#pragma once
// ShardedModule: an unchanged torch::nn::Module over model states that are sharded by a plan. Forward is called as
// usual. An operation that uses a unit's weights first unshards them (ParameterWatch). Gradients are reduced as soon as
// backward completes them.
//
// A training step runs, for each micro-batch, forward and then backward(loss, weight, {first, last}), and finally
// update(). All ranks make the same calls. A rank without work passes batches of zero rows and weight 0.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/core/model_states.h"
#include "zero/modules/gradient_collector.h"
#include "zero/modules/module_units.h"
#include "zero/modules/parameter_watch.h"
#include "zero/modules/unsharded_cache.h"

namespace zero {

class ShardedModule final : private ParameterWatcher {
 public:
  /// Copies rank 0's parameters and buffers to all ranks. `units`: the module's units. `options`: order and watching
  /// are overwritten. Module and mesh must outlive the ShardedModule; afterwards the module can only be destroyed.
  /// Without `trains`, only parameters are held. `initial`: values of Meta parameters; null: the values of rank 0's
  /// module. Throws InputError if ranks have different modules. Collective.
  ShardedModule(torch::nn::Module& module, ModuleUnits units, Mesh& mesh, StatesOptions options, bool trains = true,
                WeightSource* initial = nullptr);
  ~ShardedModule() override;
  ShardedModule(const ShardedModule&) = delete;
  ShardedModule& operator=(const ShardedModule&) = delete;

  /// Throws InputError that names the call if one rank makes it alone while the others wait
  /// (comm/agreement/rank0_scope.h). Call it before any change, at every stage. Uses of parameters and
  /// for_each_parameter() are checked too.
  void check_all_take_part(const std::string& call) const;

  /// Adds the gradients of the scalar loss, times the weight, to the step's gradients. Tensors other than parameters
  /// get the unweighted gradient. Throws InputError if no parameter contributes to the loss; rethrows backward's
  /// exceptions. In both cases the step's gradients are dropped. Collective.
  void backward(const at::Tensor& loss, double weight, MicroBatch micro);
  /// Call it after the last micro-batch. The gradients are divided by the rule's loss scale, so set it to the sum of
  /// the weights of all ranks and micro-batches.
  StepResult update(const UpdateRule& rule);
  /// Discards the step's gradients so far, so that the next micro-batch begins a step.
  void drop_step();
  /// Call it after code other than update() has changed the weights. Older graphs can no longer run backward.
  void weights_changed() const;

  /// Visits full tensors in the master type and host memory, under each of their names, one group at a time. They are
  /// parameters, or gradient sums after a step's last backward. Collective.
  using Visit = std::function<void(const std::string& name, const at::Tensor& value)>;
  void for_each_parameter(const Visit& visit);
  void for_each_gradient(const Visit& visit);

  ModelStates& states() { return *states_; }
  const ModuleUnits& units() const { return units_; }
  const UnshardedCache& open_groups() const { return *open_; }
  const torch::nn::Module& module() const { return module_; }
  /// Frees everything except the shards.
  void close() { open_->end(); }

 private:
  void before_read(const std::string& operation, const std::vector<int>& groups) override;
  void before_write(const std::string& operation, const std::vector<int>& groups) override;
  void check_backward(const at::Tensor& loss) const;
  void watch();
  ParameterGroup::TensorSink under_all_names(const Visit& visit) const;
  void check_parameters() const;

  torch::nn::Module& module_;
  ModuleUnits units_;
  std::unique_ptr<ModelStates> states_;
  std::vector<WatchedGroup> marks_;  // by group
  std::unique_ptr<UnshardedCache> open_;
  std::unique_ptr<GradientCollector> gradients_;
  bool in_backward_ = false;
};

/// Copies values into a tensor of the same shape. Elements that share memory, as after expand(), are written
/// once.
void write_values(const at::Tensor& tensor, const at::Tensor& values);

/// Copies every buffer from rank 0. Collective.
void share_buffers(const torch::nn::Module& module, Communicator& ranks);

/// If modules differ between ranks in parameters, buffers or units, throws InputError on all ranks that names the first
/// difference. Collective.
void check_same_modules(const torch::nn::Module& module, const ModuleUnits& units, Communicator& ranks);

}  // namespace zero
