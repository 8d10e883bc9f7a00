#pragma once
// Engine: runs a chain of units on this rank's micro-batches, and keeps its parameters, gradients and optimizer state
// where the plan says. It owns the loop over the chain, so the order of use is known in advance and no hooks are
// needed.
//
// One training step, A micro-batches:
//   for each micro-batch: loss = forward(context, ...); backward(loss, 1 / trained tokens of the global batch, ...)
//   update(learning rate, clipping, loss scale)
// All ranks make the same calls with batches of their own; a rank without work passes a batch of zero rows.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/stream.h"
#include "models/nn/recompute.h"
#include "models/weight_source.h"
#include "zero/core/backward_hooks.h"
#include "zero/core/buffer_sizes.h"
#include "zero/core/parameter_group.h"
#include "zero/core/step_result.h"

namespace zero {

/// Where states live that are not in memory; an empty factory means memory.
struct OffloadPolicy {
  StateStoreFactory optimizer;
  std::function<std::unique_ptr<ShardStore>(const std::vector<std::int64_t>& bytes)> weights;  // of stage 3's shards
  bool through_host = false;  // what is held elsewhere passes through buffers of the host, as it always does on a GPU
};

struct EngineOptions {
  ShardPlan plan;
  Precision precision;
  OptimizerOptions optimizer;
  int shard_degree = 0;          // ranks that share one copy of the states (hybrid sharding); 0: all
  bool keep_frozen = false;      // frozen weights stay whole at stage 3
  bool quantize_frozen = false;  // frozen blocks are held and gathered in NF4 at every stage
  OffloadPolicy offload;
  int recompute_every = 0;       // every k-th block is recomputed in backward; 0: none, 1: all
  at::Device device = at::kCPU;  // of weights, states and batches; the communicator must take its tensors
  Communicator* host = nullptr;  // the same ranks for host tensors; null: the communicator takes them
  bool overlap = false;  // gathers run ahead by one unit and sums beside the computation, each on a communicator of
                         // its own, for a second gather buffer and a second reduce buffer. Changes no result.
  bool recompute_attention = false;  // the attention half of every block is recomputed instead
  bool quantize_scales = false;      // beside quantize_frozen: the scales of the NF4 blocks are held in 8 bits
};

/// How the ranks are divided: `sharing` of them hold one copy of the states, by this plan, and `replicas` hold each
/// shard.
struct RankDivision {
  ShardPlan plan;
  int sharing = 1, replicas = 1;
};
/// InputError when shard_degree does not divide the ranks.
RankDivision divide_ranks(const EngineOptions& options, int ranks);

/// What an update needs beside the gradients. Gradients carry the loss scale.
struct UpdateRule {
  double lr = 1e-3;
  double max_norm = 1.0;  // 0: no clipping
  double loss_scale = 1.0;
  bool reports = true;  // false: nobody asks for the result, and on a GPU nothing is brought to the host
};

/// Position of a micro-batch in its step.
struct MicroBatch {
  bool first = true;
  bool last = true;
};

class Engine final : private BackwardHooks {
 public:
  /// The chain outlives the engine; its parameters' tensors become the engine's. Collective. Throws InputError when
  /// shard_degree does not divide the ranks.
  Engine(Chain chain, Communicator& communicator, const EngineOptions& options);
  ~Engine() override;

  /// Fills the weights; each rank reads its own part. `frozen_only`: trained ones get theirs by
  /// ParameterGroup::visit_states(). Collective.
  void load(WeightSource& source, bool frozen_only = false);
  /// After the states of all trained groups were written: makes the weights known, and counts from so many steps on.
  /// Collective.
  void resume(std::int64_t steps_done);

  /// The loss summed over the batch's trained tokens (not averaged), a scalar that requires grad.
  at::Tensor forward(const ForwardContext& context, MicroBatch micro);
  /// Gradients of scale x loss are added to those of the step and reduced as the stage wants it.
  void backward(const at::Tensor& loss, double scale);

  /// Without gradients: the summed loss; or what `head` makes of the last unit's input, with all its weights in place.
  at::Tensor evaluate(const ForwardContext& context);
  at::Tensor evaluate(const ForwardContext& context,
                      const std::function<at::Tensor(Unit& head, const at::Tensor& x)>& head);

  /// One step of the optimizers, with gradients clipped by their global L2 norm; none when that is not finite. Where all
  /// of them read the step's numbers in a GPU's memory nothing waits for the device. `loss_sum`: of the step on this rank,
  /// a scalar on the engine's device. Collective; the result is the same on all ranks but for the loss.
  PendingStepResult update(const UpdateRule& rule, const at::Tensor& loss_sum);

  /// Every tensor whole, one group at a time, on all ranks, in host memory. Collective. Gradients are those of the last
  /// step, unclipped, until its update, which may leave others.
  void export_weights(const ParameterGroup::TensorSink& sink, bool trainable_only = false);
  void export_gradients(const ParameterGroup::TensorSink& sink);

  const std::vector<std::unique_ptr<ParameterGroup>>& groups() const { return groups_; }
  /// The optimizers, and the numbers that each of them keeps.
  OptimizerSet& optimizers() { return optimizers_; }
  const OptimizerSet& optimizers() const { return optimizers_; }
  Statistics& statistics(int optimizer) { return statistics_.at(std::size_t(optimizer)); }
  const std::vector<TensorSpec>& optimizer_tensors(int optimizer) const {
    return optimizer_tensors_.at(std::size_t(optimizer));
  }

  /// Updates that were taken. On a GPU waits for the device.
  std::int64_t steps_done() const;
  /// As they came, but for the plan, which is stage 0 where a rank holds everything.
  const EngineOptions& options() const { return options_; }
  /// Of the buffers for weights that come and go, and for gradients on their way to a shard.
  std::int64_t gather_buffer_bytes() const { return gather_buffers_ ? gather_buffers_->bytes() : 0; }
  std::int64_t reduce_buffer_bytes() const { return reduce_buffers_ ? reduce_buffers_->bytes() : 0; }
  Communicator& communicator() { return communicator_; }
  Communicator& host() { return options_.host ? *options_.host : communicator_; }
  at::Device device() const { return options_.device; }
  /// The most bytes that this rank has held on its GPU; 0 on the CPU, where the tracker knows.
  std::int64_t peak_device_bytes() const;

 private:
  void make_groups();
  bool quantized(const GroupSpec& spec) const;
  Nf4Codec codec_of(const FlatLayout& layout, bool sharded) const;
  void make_buffers(const std::vector<GroupSpec>& specs, const std::vector<FlatLayout>& layouts);
  void reserve(const std::vector<GroupSpec>& specs, const std::vector<FlatLayout>& layouts, const BufferSizes& buffers);
  void split_ranks();
  at::Tensor run_unit(int unit, const at::Tensor& x);
  at::Tensor run_chain(const ForwardContext& context,
                       const std::function<at::Tensor(Unit& head, const at::Tensor& x)>* head);
  bool recomputes(int unit) const;

  bool on_device() const { return options_.device.is_cuda(); }
  std::int64_t alignment_of(const GroupSpec& spec) const;
  void start_optimizers();
  bool steps_on_device() const;
  const OptimizerOptions& options_with_device_numbers() const;
  at::Device states_device() const;
  Communicator& sharing() { return shards_ ? *shards_ : communicator_; }
  double gradient_norm();
  void sum_squares_on_device();
  void step(double learning_rate, double gradient_factor, const at::Tensor* numbers);
  void conclude_pass(int pass, const std::vector<UpdatePass>& passes);
  void sum_statistics(const at::Tensor& sums);
  PendingStepResult update_on_device(const UpdateRule& rule, const at::Tensor& loss_sum);

  void open(int unit, Phase phase);
  void fetch(int unit);
  void prefetch(int unit, Phase phase);
  void close(int unit);
  void close_all();
  void before_backward(int unit) override;
  void after_backward(int unit) override;

  Chain chain_;
  Communicator& communicator_;
  EngineOptions options_;
  std::unique_ptr<Communicator> shards_, replicas_;  // of hybrid sharding; null: all ranks share one copy
  std::unique_ptr<Communicator> reductions_;  // the sharing ranks once more, to overlap; null: the same communicator
  SideStream gather_stream_, reduce_stream_;
  std::unique_ptr<ShardStore> weight_store_;
  std::unique_ptr<BufferPool> gather_buffers_, reduce_buffers_;
  OptimizerSet optimizers_{options_.optimizer};
  OptimizerTensors optimizer_tensors_;
  std::vector<Statistics> statistics_;  // by optimizer
  std::vector<std::unique_ptr<ParameterGroup>> groups_;
  std::vector<std::vector<ParameterGroup*>> needed_by_;  // by unit: its own groups, and those that it borrows from
  std::vector<ParameterGroup*> spanning_;                // groups of the whole model
  std::vector<RecomputedBody> bodies_;                   // by unit, for recompute

  const ForwardContext* context_ = nullptr;  // of the forward under way, and of its backward
  ForwardContext held_context_;
  MicroBatch micro_;
  std::vector<bool> is_open_;
  std::vector<bool> is_collected_;
  bool spanning_open_ = false;
  at::Tensor numbers_, norm_scratch_;  // on a GPU: StepNumbers
  std::int64_t steps_done_ = 0;
  AbandonOnError abandon_{communicator_.failures()};  // last: groups let go of page-locked memory
};

}  // namespace zero
