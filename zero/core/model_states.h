#pragma once
// ModelStates: parameters, gradients and optimizer state of the units of a model (what the ZeRO paper calls model
// states), where the plan says, on the ranks of a mesh. Who runs the units, in which order, is another matter: an
// Engine (zero/core/engine.h) or somebody else's module (zero/modules/).
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

/// The plan as it is carried out on the mesh: stage 0 where no two ranks share a parameter, unless weights live
/// elsewhere.
ShardPlan plan_on(const MeshShape& mesh, const StatesOptions& options);

/// Numbers beside the states that checkpoints hold, alike on all ranks.
struct KeptArray {
  std::string name;
  at::Tensor values;     // flat; fp32, fp64 or bytes
  bool required = true;  // a checkpoint without it is of another model
};

/// The settings of an update. Gradients carry the loss scale.
struct UpdateRule {
  double lr = 1e-3;       // of tensors that have no rate of their own
  double max_norm = 1.0;  // 0: no clipping
  double loss_scale = 1.0;
  bool reports = true;    // false: nobody asks for the result, and on a GPU nothing is brought to the host
  double schedule = 1.0;  // what rates of groups' own are multiplied by
};

class ModelStates {
 public:
  /// The units and the mesh outlive it; the parameters' tensors become its own, or look at its memory where they are
  /// given. Collective. Throws InputError when the placements are no stage.
  ModelStates(const Units& units, Mesh& mesh, const StatesOptions& options);
  ~ModelStates();
  ModelStates(const ModelStates&) = delete;
  ModelStates& operator=(const ModelStates&) = delete;

  /// Fills the weights; each rank reads its own part. `frozen_only`: trained ones get theirs by
  /// ParameterGroup::visit_states(). Collective.
  void load(WeightSource& source, bool frozen_only = false);
  /// The same of all, in the middle of a run: the optimizers begin anew, with no step done.
  void restart(WeightSource& source);
  /// After the states of all trained groups were written, and frozen weights where they are saved: makes the weights
  /// known, and counts from so many steps on. Collective.
  void resume(std::int64_t steps_done);

  /// One step of the optimizers, with gradients clipped by their global L2 norm; none when that is not finite. Where
  /// all of them read the step's numbers in a GPU's memory nothing waits for the device. `losses`: of the step on this
  /// rank, [n] in fp64 on the engine's device. Collective; the result is the same on all ranks but for the loss.
  PendingStepResult update(const UpdateRule& rule, const at::Tensor& losses);

  /// Every tensor whole, one group at a time, on all ranks, in host memory. Collective. Gradients are those of the last
  /// step, unclipped, until its update, which may leave others.
  void export_weights(const ParameterGroup::TensorSink& sink, bool trainable_only = false);
  void export_gradients(const ParameterGroup::TensorSink& sink);
  /// The memory that export_weights() takes meanwhile, at most. Bytes.
  std::int64_t export_bytes(bool trainable_only) const;
  /// The full tensors that export_weights() hands on, in its order.
  std::vector<TensorSpec> exported_tensors(bool trainable_only) const;

  /// Those of other stages of a pipeline too (ParameterGroup::is_here()).
  const std::vector<std::unique_ptr<ParameterGroup>>& groups() const { return groups_.groups; }
  /// For those who run the units.
  UnitGroups& units() { return groups_; }
  /// The optimizers, and the numbers that each of them keeps.
  const OptimizerSet& optimizers() const { return optimizers_; }
  Statistics& statistics(int optimizer) { return statistics_.at(std::size_t(optimizer)); }
  const std::vector<TensorSpec>& optimizer_tensors(int optimizer) const {
    return optimizer_tensors_.at(std::size_t(optimizer));
  }

  /// Further arrays of the model's owner for checkpoints; reading one writes to them.
  std::vector<KeptArray>& kept() { return kept_; }

  /// Updates that were taken. On a GPU waits for the device.
  std::int64_t steps_done() const;
  /// As they came, but for the plan, which is stage 0 where a rank holds everything.
  const StatesOptions& options() const { return options_; }
  /// Bytes of the buffers for weights that are gathered on use, and for gradients on their way to a shard.
  std::int64_t gather_buffer_bytes() const;
  std::int64_t reduce_buffer_bytes() const;
  Mesh& mesh() { return mesh_; }
  /// This rank's place along the pipeline axis.
  int stage() const { return mesh_.index(MeshAxis::pipeline); }
  /// The axes that a group's states are divided over (at stage 0, where they are not, those of all ranks that hold
  /// them), and along which ranks hold the same ones. Whole parameters are divided over the tensor axis too: every
  /// element has one owner.
  AxisSet sharing_axes(const GroupSpec& spec) const { return sharing_of(spec).axes; }
  AxisSet replica_axes() const { return replicas_; }
  /// The ranks between which whole matrices come together for an optimizer.
  ExchangeRanks exchange_ranks();
  const Mesh& mesh() const { return mesh_; }
  Communicator& host() { return mesh_.host(); }
  at::Device device() const { return options_.device; }
  /// The most bytes that this rank has held on its GPU; 0 on the CPU, where the tracker knows.
  std::int64_t peak_device_bytes() const;

 private:
  /// The ranks that share parameters, and the buffers through which their vectors pass.
  struct Sharing {
    AxisSet axes;
    Communicator* ranks = nullptr;
    std::unique_ptr<Communicator> reductions = nullptr;  // the same ranks once more, to overlap; null: `ranks`
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
  /// How a group's tensors are handed on, and in which type.
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
  AxisSet replicas_;               // along which ranks hold the same parts
  Sharing whole_;                  // of whole parameters
  std::optional<Sharing> slices_;  // of slices, where the mesh has a tensor axis
  std::unique_ptr<ShardStore> weight_store_;
  OptimizerSet optimizers_{options_.optimizer};
  OptimizerTensors optimizer_tensors_;
  std::vector<Statistics> statistics_;  // by optimizer
  UnitGroups groups_;
  at::Tensor numbers_, norm_scratch_;  // on a GPU: StepNumbers
  std::int64_t steps_done_ = 0;
  std::vector<KeptArray> kept_;
  AbandonOnError abandon_{mesh_.ranks().failures()};  // last: groups let go of page-locked memory
};

}  // namespace zero
