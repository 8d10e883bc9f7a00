#pragma once
// ShardedModule: a torch::nn::Module as it is, over model states that lie where a plan says. Its forward is called as ever:
// the weights of a unit come when an operation uses them (ParameterWatch), and gradients go to their groups as backward
// finishes them.
//
// One training step, A micro-batches, of each: forward, then backward(loss, weight, {first, last}); then update().
// All ranks make the same calls; a rank without work passes batches of zero rows and the weight 0.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/core/model_states.h"
#include "zero/modules/gradient_collector.h"
#include "zero/modules/module_units.h"
#include "zero/modules/open_groups.h"
#include "zero/modules/parameter_watch.h"

namespace zero {

class ShardedModule final : private ParameterWatcher {
 public:
  /// Every rank's parameters and buffers become those of rank 0. `units`: of the module. `options`: order and watching are set here. Module and mesh
  /// outlive this, and the module is not used afterwards but to be destroyed. Without `trains` there are parameters alone.
  /// `initial`: values of parameters on Meta; null: those that rank 0's module has. Throws InputError where ranks have other
  /// modules. Collective.
  ShardedModule(torch::nn::Module& module, ModuleUnits units, Mesh& mesh, StatesOptions options, bool trains = true,
                WeightSource* initial = nullptr);
  ~ShardedModule() override;
  ShardedModule(const ShardedModule&) = delete;
  ShardedModule& operator=(const ShardedModule&) = delete;

  /// Throws InputError that names the call where one rank alone makes it while the others wait (comm/sole_work.h): at every
  /// stage, before anything changes. Uses of parameters are checked so, and for_each_parameter().
  void check_all_take_part(const std::string& call) const;

  /// Gradients of the loss, times the weight, are added to those of the step. Tensors that are no parameters get those of
  /// the loss itself. `loss`: a scalar. Throws InputError for a loss that no
  /// parameter has a part in, and whatever backward throws; the step's gradients are then dropped. Collective.
  void backward(const at::Tensor& loss, double weight, MicroBatch micro);
  /// After the last micro-batch. `total_weight`: of all ranks and micro-batches, by which gradients are divided.
  StepResult update(const StepRates& rates, double max_norm, double total_weight);
  /// Gives up the step's gradients so far: the next micro-batch is a first one.
  void drop_step();
  /// After others than update() changed the weights. Graphs with the old ones have no backward any more.
  void weights_changed() const;

  /// Whole values in master type and host memory, under each of their names, one group at a time: parameters, and the
  /// sums of gradients after the last backward of a step. Collective.
  using Visit = std::function<void(const std::string& name, const at::Tensor& value)>;
  void for_each_parameter(const Visit& visit);
  void for_each_gradient(const Visit& visit);

  ModelStates& states() { return *states_; }
  const ModuleUnits& units() const { return units_; }
  const OpenGroups& open_groups() const { return *open_; }
  const torch::nn::Module& module() const { return module_; }
  /// Lets go of what is there beside the shards.
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
  std::unique_ptr<OpenGroups> open_;
  std::unique_ptr<GradientCollector> gradients_;
  bool in_backward_ = false;
};

/// Copies values into a tensor of their shape. What it has several times over one element, as expand() makes it, is written
/// once.
void write_values(const at::Tensor& tensor, const at::Tensor& values);

/// Every buffer becomes rank 0's. Collective.
void share_buffers(const torch::nn::Module& module, Communicator& ranks);

/// Throws InputError on all ranks, naming the first difference, where their modules have other parameters, buffers or units.
/// Collective.
void check_same_modules(const torch::nn::Module& module, const ModuleUnits& units, Communicator& ranks);

}  // namespace zero
