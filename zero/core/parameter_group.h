#pragma once
// ParameterGroup: the parameters of one group as flat vectors, and what a rank holds of them.
//
// Held by a rank, for P elements, at rest:
//                  stage 0   stage 1   stage 2   stage 3
//   weights        P         P         P         P/N      compute type; leaves are views of the full vector
//   gradient       P         P         P/N       P/N      gradient type
//   states         P each    P/N       P/N       P/N      master weights, where the weights are not their own, and what
//                                                         the optimizer keeps; numbers of a tensor on every rank
// A frozen group has weights alone; quantised, at rest in NF4 at every stage, its full vector comes and goes as at
// stage 3. "Own range" is the part of the flat vector whose optimizer state this rank holds.
#include <functional>
#include <limits>
#include <vector>

#include "comm/communicator.h"
#include "comm/stream.h"
#include "models/weight_source.h"
#include "offload/kernels/reduce_kernels.h"
#include "offload/shard_store.h"
#include "offload/state_store.h"
#include "zero/core/buffers/buffer_pool.h"
#include "zero/core/buffers/flat_layout.h"
#include "zero/core/buffers/flat_storage.h"
#include "zero/core/buffers/nf4_codec.h"
#include "zero/core/buffers/shard_lease.h"
#include "zero/core/group_plan.h"
#include "zero/core/host_update.h"
#include "zero/core/precision.h"
#include "zero/core/shard_plan.h"
#include "zero/core/state_shard.h"

namespace zero {

/// The shapes of the tensors that each optimizer of a run treats, in the order of its numbers for them.
using OptimizerTensors = std::vector<std::vector<TensorSpec>>;

/// What all groups of an engine share.
struct GroupContext {
  ShardPlan plan;
  Precision precision;
  at::Device device = at::kCPU;
  Communicator* shards = nullptr;        // the ranks over which states are sharded; at stage 0 all ranks
  Communicator* reductions = nullptr;    // the same ranks, for sums of gradients; may be the same communicator
  Communicator* replicas = nullptr;      // the ranks that hold the same shard; null when there is no other
  BufferPool* gather_buffers = nullptr;  // full weights of sharded groups, while they are needed
  BufferPool* reduce_buffers = nullptr;  // full gradients of one group on their way to the shards
  SideStream* gather_stream = nullptr;  // gathers of weights and sums of gradients run in these, beside the computation
  SideStream* reduce_stream = nullptr;
  ShardStore* weight_store = nullptr;  // store of sharded weights, one shard per group; null: tensors
  StateStoreFactory make_states = {};  // stores of optimizer states, on the host; empty: tensors of the device
  OptimizerSet* optimizers = nullptr;
  OptimizerTensors* optimizer_tensors = nullptr;  // groups add theirs
  bool through_host = false;     // weights and gradients are not where the states are: they are copied there and back
  bool keep_frozen = false;      // frozen weights stay whole at stage 3 too
  bool quantize_frozen = false;  // frozen blocks are held and gathered in NF4
  bool quantize_scales = false;  // and their scales in 8 bits
};

/// Whether a rank holds a part of the group's weights only.
bool shards_weights(const GroupSpec& spec, const ShardPlan& plan, bool keep_frozen);

/// Elements of a group that every rank holds at rest and that collectives read or write. Without a codec.
struct RestNumel {
  std::int64_t weights = 0, gradient = 0;
};
RestNumel rest_numel(const GroupSpec& spec, const FlatLayout& layout, const ShardPlan& plan, bool keep_frozen);

/// Sharded: only the own part is held. Gathering: the full vector has memory, not yet its values. Unsharded: leaves
/// are usable.
enum class ShardedState : std::uint8_t { sharded, gathering, unsharded };
const char* name_of(ShardedState state);

class ParameterGroup {
 public:
  /// Points the members' leaves at the group's memory. Weights are not yet filled: load() does.
  ParameterGroup(int index, GroupSpec spec, const Chain& chain, FlatLayout layout, const GroupContext& context);

  const GroupSpec& spec() const { return spec_; }
  const FlatLayout& layout() const { return layout_; }
  ShardedState state() const { return state_; }
  bool owns(ParameterRef parameter) const;

  /// Fills weights, master and moments (zero): every rank asks the source for its own range only. Collective.
  void load(WeightSource& source);

  /// The most that load() holds beside the group, in bytes of host memory, and that an export of the weights does.
  std::int64_t load_bytes() const;
  std::int64_t export_bytes() const;
  /// Buffers of the host through which the update passes where states are held elsewhere and weights on a GPU.
  HostUpdate::Shape host_update_shape() const;

  /// The flat elements whose states this rank holds: [own_begin, own_begin + own_numel).
  std::int64_t own_begin() const { return own_begin_; }
  std::int64_t own_numel() const { return own_numel_; }
  /// The own range's states, by optimizer. Of a trained group.
  const std::vector<std::unique_ptr<StateShard>>& states() const { return states_; }
  /// All states of a shard of states() in host memory, master weights first (where weights are their own, those), in
  /// ascending chunks counted from its beginning. `read` leaves them; `write` sets them all, and the own weights with
  /// them: gather_updated() must follow. A `read` of some elements alone, counted as chunks are, may leave out chunks
  /// that hold none of them, and does so where it spares their way from a GPU.
  struct StateRange {
    std::int64_t begin = 0, end = std::numeric_limits<std::int64_t>::max();
  };
  using StateVisit = std::function<void(const StateChunk&)>;
  void visit_states(StateShard& shard, StateAccess access, const StateVisit& visit) {
    visit_states(shard, access, StateRange(), visit);
  }
  void visit_states(StateShard& shard, StateAccess access, const StateRange& wanted, const StateVisit& visit);
  /// What visit_states() hands out.
  std::vector<StateSpec> visited_states(const StateShard& shard) const;

  /// Starts the all-gather where weights are sharded, if it has not been started. unshard() or cancel_prefetch() must
  /// follow.
  void prefetch(Phase phase);
  /// Makes the leaves usable: an all-gather where weights are sharded, nothing elsewhere. Calls nest.
  void unshard(Phase phase);
  void reshard();
  /// Gives up a prefetch that nobody came for.
  void cancel_prefetch();

  /// Packs the gradients of the members in that unit, those of borrowers included, and drops them from the leaves. A
  /// leaf without a gradient counts as zeros. `first`: the first micro-batch of a step.
  void collect_gradients(int unit, bool first);

  /// After all members were collected. Stages 2 and 3 reduce every micro-batch into the shard, stages 0 and 1 reduce
  /// once a step, after the last one.
  void reduce_gradients(bool first, bool last);

  /// Sum of squares of this rank's 1/N of the gradient: the same part at every stage, so that norms agree to the bit.
  NormPart gradient_norm_part() const;
  /// The part itself, gradient type.
  at::Tensor gradient_part() const;

  /// A pass of the optimizers over the own range; the last one writes the weights in compute type. `passes`: by
  /// optimizer.
  void update(const std::vector<UpdatePass>& passes);
  /// Passes that the group's optimizers take.
  int passes() const;
  /// Begins to bring in what update() will need, where that takes time.
  void prefetch_update(int pass);
  /// Begins to bring the own weights to this rank, where they live elsewhere.
  void fetch();
  /// Where update() finds the own range's gradient, on the device of the states, and leaves what is to be transformed.
  at::Tensor update_gradient() const;
  /// Begins to make the own range's new weights known where weights are resident and optimizer state is sharded: in the
  /// gather stream, beside what the current stream does next. unshard() and whatever writes weights wait for it.
  /// Collective.
  void gather_updated();

  using TensorSink = std::function<void(const TensorSpec& spec, const at::Tensor& value)>;
  /// Hands every tensor whole to the sink, in layout order, in master type: weights or gradients. Collective; one flat
  /// vector of the group is alive meanwhile.
  void export_weights(const TensorSink& sink);
  void export_gradients(const TensorSink& sink);

 private:
  bool weights_sharded() const;
  bool comes_and_goes() const { return weights_sharded() || codec_; }  // the full vector
  at::ScalarType rest_type() const { return codec_ ? at::kByte : context_.precision.compute; }
  bool gradients_sharded() const { return context_.plan.gradients == Placement::sharded; }
  ShardLease own_weights(bool changes) const;  // [own_numel], compute type; of a codec, its bytes
  at::Tensor own_gradient() const;             // [own_numel], gradient type
  at::Tensor shard_of(const at::Tensor& full) const;
  CallTag tag(Phase phase) const { return {phase, spec_.unit, index_}; }

  void await_updated() const;
  void put_back();
  void issue_reduction(bool first, bool last);
  void gather_weights(const at::Tensor& full, const at::Tensor& buffer, Phase phase);
  at::Tensor zeros(std::int64_t numel, at::ScalarType type, Communicator& communicator) const;
  void decode_into_full();
  void load_encoded(WeightSource& source);
  void load_weights(WeightSource& source, const at::Tensor& weights);
  void allocate_weights();
  void allocate_states(const Chain& chain);
  void point_leaves(const Chain& chain);
  std::vector<StateLayout> state_layouts(const Chain& chain);
  void move_to(ShardedState next);
  void export_flat(const at::Tensor& own, const TensorSink& sink);
  void read_into(WeightSource& source, std::int64_t begin, const at::Tensor& values) const;
  void read_range(WeightSource& source, std::int64_t begin, const at::Tensor& values) const;

  struct Leaf {
    ParameterRef member;
    at::Tensor tensor;
    std::vector<at::Tensor> borrowed;  // leaves of other units over the same memory
    std::int64_t offset, numel;
  };

  int index_;
  GroupSpec spec_;
  FlatLayout layout_;
  GroupContext context_;
  std::vector<Leaf> leaves_;
  std::int64_t own_begin_ = 0, own_numel_ = 0;

  ShardedState state_ = ShardedState::sharded;
  int users_ = 0;
  int gather_buffer_ = -1;
  int reduce_buffer_ = -1;
  std::unique_ptr<Nf4Codec> codec_;  // of quantised weights, else null
  int code_buffer_ = -1;             // gathered bytes of a codec
  FlatStorage full_;                 // weights that come and go: memory only while full
  // resident: [numel]; sharded: [shard_numel], undefined when a store is their home; of a codec, bytes
  at::Tensor weights_;
  at::Tensor packed_;    // gradients on their way, compute type, [numel], while being collected
  at::Tensor gradient_;  // [numel] or [shard_numel]
  Event updated_;        // the end of the last gather_updated(), until somebody has waited for it
  mutable bool gathers_updated_ = false;
  std::vector<std::unique_ptr<StateShard>> states_;
  std::unique_ptr<HostUpdate> host_update_;  // where the states are on the host and the rest is on a device
};

}  // namespace zero
