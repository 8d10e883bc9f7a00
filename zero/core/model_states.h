#pragma once
// ModelStates: parameters, gradients and optimizer state of a model's units (the ZeRO paper's "model states"), placed
// on a mesh of ranks as the plan says. The units are run by an Engine (zero/core/engine.h), or by a user's module
// (zero/modules/).
//
// All ranks make the same calls in the same order.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/mesh/mesh.h"
#include "models/weight_source.h"
#include "zero/core/states/matrix_exchange.h"
#include "zero/core/states_options.h"
#include "zero/core/step_result.h"
#include "zero/core/unit_groups.h"

namespace zero {

/// The plan in effect on the mesh. It is stage 0 if no two ranks share a parameter, unless weights are offloaded.
ShardPlan plan_on(const MeshShape& mesh, const StatesOptions& options);

/// Values that checkpoints hold in addition to the states, equal on all ranks.
struct KeptArray {
  std::string name;
  at::Tensor values;     // flat; fp32, fp64 or bytes
  bool required = true;  // true: a checkpoint without it belongs to another model
};

/// The settings of an update. Gradients carry the loss scale.
struct UpdateRule {
  double lr = 1e-3;       // for tensors that have no rate of their own
  double max_norm = 1.0;  // 0: no clipping
  double loss_scale = 1.0;
  bool reports = true;    // false: the result is not read, so on a GPU nothing is copied to the host
  double schedule = 1.0;  // factor for the rates of parameter groups that have their own
};

class ModelStates {
 public:
  /// The units and the mesh must outlive the ModelStates. It takes over the parameters' tensors; tensors of a user's
  /// module become views of its memory. Throws InputError if the placements match no ZeRO stage. Collective.
  ModelStates(const Units& units, Mesh& mesh, const StatesOptions& options);
  ~ModelStates();
  ModelStates(const ModelStates&) = delete;
  ModelStates& operator=(const ModelStates&) = delete;

  /// Fills the weights; each rank reads its own part. `frozen_only`: ParameterGroup::visit_states() will write the
  /// trained weights. Collective.
  void load(WeightSource& source, bool frozen_only = false);
  /// Loads all weights in the middle of a run, and resets the optimizers to zero steps.
  void restart(WeightSource& source);
  /// Call it after the states of all trained groups were written, and frozen weights if they are saved. Distributes the
  /// weights, and sets the step count to `steps_done`. Collective.
  void resume(std::int64_t steps_done);

  /// Runs one step of the optimizers, with gradients clipped by their global L2 norm. If the norm is not finite, takes
  /// no step. If all optimizers read the step's numbers from GPU memory, the host does not wait for the device.
  /// `losses`: this rank's losses of the step, [n] in fp64 on the engine's device. All of the result but the loss is
  /// the same on all ranks. Collective.
  PendingStepResult update(const UpdateRule& rule, const at::Tensor& losses);

  /// Hands every full tensor to `sink` on all ranks, one group at a time, in host memory. Gradients are those of the
  /// current step, unclipped. They are valid only until the step's update, which may overwrite them. Collective.
  void export_weights(const ParameterGroup::TensorSink& sink, bool trainable_only = false);
  void export_gradients(const ParameterGroup::TensorSink& sink);
  /// The most bytes of memory that export_weights() takes while it runs.
  std::int64_t export_bytes(bool trainable_only) const;
  /// The full tensors that export_weights() hands on, in its order.
  std::vector<TensorSpec> exported_tensors(bool trainable_only) const;

  /// All groups, including those of other pipeline stages (ParameterGroup::is_here()).
  const std::vector<std::unique_ptr<ParameterGroup>>& groups() const { return groups_.groups; }
  /// For the code that runs the units.
  UnitGroups& units() { return groups_; }
  /// The optimizers, and the statistics that each of them keeps.
  const OptimizerSet& optimizers() const { return optimizers_; }
  Statistics& statistics(int optimizer) { return statistics_.at(std::size_t(optimizer)); }
  const std::vector<TensorSpec>& optimizer_tensors(int optimizer) const {
    return optimizer_tensors_.at(std::size_t(optimizer));
  }

  /// More arrays that the model's owner saves in checkpoints. Reading a checkpoint writes to them.
  std::vector<KeptArray>& kept() { return kept_; }

  /// Returns the number of updates taken. On a GPU, waits for the device.
  std::int64_t steps_done() const;
  /// The options as passed, except that the plan is stage 0 if a rank holds everything.
  const StatesOptions& options() const { return options_; }
  /// Bytes of the buffers for weights that are gathered on use, and for gradients that are reduced to a shard.
  std::int64_t gather_buffer_bytes() const;
  std::int64_t reduce_buffer_bytes() const;
  Mesh& mesh() { return mesh_; }
  /// This rank's index along the pipeline axis.
  int stage() const { return mesh_.index(MeshAxis::pipeline); }
  /// sharing_axes(): the axes over which a group's states are divided; at stage 0, the axes of all ranks that hold the
  /// states. replica_axes(): the axes along which ranks hold the same states. Whole parameters are divided over the
  /// tensor axis too, so every element has one owner.
  AxisSet sharing_axes(const GroupSpec& spec) const { return sharing_of(spec).axes; }
  AxisSet replica_axes() const { return replicas_; }
  /// The ranks that exchange parts of matrices, so that an optimizer gets whole ones.
  ExchangeRanks exchange_ranks();
  const Mesh& mesh() const { return mesh_; }
  Communicator& host() { return mesh_.host(); }
  at::Device device() const { return options_.device; }
  /// Peak bytes that this rank has held on its GPU; 0 on the CPU, where the tracker counts.
  std::int64_t peak_device_bytes() const;

 private:
  /// The ranks that share parameters, and the buffers for the parameters' vectors.
  struct Sharing {
    AxisSet axes;
    Communicator* ranks = nullptr;
    std::unique_ptr<Communicator> reductions = nullptr;  // a second one of the same ranks, to overlap; null: `ranks`
    std::unique_ptr<BufferPool> gather_buffers = nullptr, reduce_buffers = nullptr;

    Communicator& sums() { return reductions ? *reductions : *ranks; }
  };

  Sharing make_sharing(AxisSet axes);
  const Sharing& sharing_of(const GroupSpec& spec) const { return spec.cut ? *slices_ : whole_; }
  GroupContext make_context(Sharing& sharing);
  std::vector<GroupLayout> lay_out_groups() const;
  void make_buffers(const std::vector<GroupLayout>& layouts, Sharing& sharing);
  void check_runs() const;
  void check_order() const;
  void reserve(const std::vector<GroupLayout>& layouts, const BufferSizes& buffers, Sharing& sharing);
  void make_store(const std::vector<GroupLayout>& layouts);
  void make_groups();
  void find_users();
  /// The function that exports a group's tensors, and their type.
  struct Export {
    std::function<void(ParameterGroup& group, const ParameterGroup::TensorSink& sink)> run;
    std::function<at::ScalarType(const ParameterGroup& group)> type;
  };
  std::vector<ParameterGroup*> exported_groups(bool trainable_only) const;
  void export_group(ParameterGroup& group, const Export& of_group, const ParameterGroup::TensorSink& sink);
  void export_in_order(const std::vector<ParameterGroup*>& exported, const Export& of_group,
                       const ParameterGroup::TensorSink& sink);
  Communicator& gathers() { return *whole_.ranks; }
  Communicator& norm_ranks() { return mesh_.along(whole_.axes | axes::model); }
  /// The ranks that hold different parts of the states.
  Communicator& statistics_ranks() {
    const bool resident = options_.plan.optimizer == Placement::resident;
    return mesh_.along((resident ? AxisSet() : whole_.axes) | axes::model);
  }

  bool on_device() const { return options_.device.is_cuda(); }
  void start_optimizers();
  bool steps_on_device() const;
  const OptimizerOptions& options_with_device_numbers() const;
  at::Device states_device() const;
  double gradient_norm();
  double exact_norm();
  void sum_squares_on_device();
  StepResult judge(const UpdateRule& rule, const at::Tensor& losses);
  void judge_on_device(const UpdateRule& rule);
  std::vector<UpdateContext> begin_step(const UpdateRule& rule, double gradient_factor);
  void begin_pass(std::vector<UpdateContext>& contexts, int pass);
  void conclude_pass(const std::vector<UpdateContext>& contexts);
  void sum_statistics(const at::Tensor& sums);
  void count_whole_once(const std::vector<UpdateContext>& contexts);
  std::vector<std::pair<std::string, double>> reports(const std::vector<UpdateContext>& contexts) const;
  PendingStepResult result_on_device(const at::Tensor& losses);

  Mesh& mesh_;
  StatesOptions options_;
  AxisSet replicas_;               // axes along which ranks hold the same parts
  Sharing whole_;                  // of whole parameters
  std::optional<Sharing> slices_;  // of slices, if the mesh has a tensor axis
  std::unique_ptr<ShardStore> weight_store_;
  OptimizerSet optimizers_{options_.optimizer};
  OptimizerTensors optimizer_tensors_;
  std::vector<Statistics> statistics_;  // by optimizer
  UnitGroups groups_;
  at::Tensor numbers_, norm_scratch_;  // on a GPU: StepNumbers
  std::int64_t steps_done_ = 0;
  std::vector<KeptArray> kept_;
  AbandonOnError abandon_{mesh_.ranks().failures()};  // the last member, since groups release page-locked memory
};

}  // namespace zero
