#pragma once
// ParameterGroup: the parameters of one group as flat vectors, and what a rank holds of them.
//
// Held by a rank, for P elements, at rest:
//                  stage 0   stage 1   stage 2   stage 3
//   weights        P         P         P         P/N      compute type; leaves are views of the full vector
//   gradient       P         P         P/N       P/N      gradient type
//   states         P each    P/N       P/N       P/N      master weights, where the weights are not their own, and what
//                                                         the optimizer keeps; numbers of a tensor on every rank
// A group of another stage of the pipeline axis is known by its layout: the rank holds nothing of it.
// A frozen group has weights alone; in a format of its own (FrozenFormat), at every stage, its full vector comes and
// goes as at stage 3. "Own part" is that of the flat vector whose optimizer state this rank holds.
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "models/gradient_place.h"
#include "models/weight_source.h"
#include "zero/core/buffers/gradient_buffer.h"
#include "zero/core/buffers/weight_buffer.h"
#include "zero/core/group_layout.h"
#include "zero/core/host_update.h"
#include "zero/core/states/state_shard.h"
#include "zero/core/states_options.h"

namespace zero {

/// The shapes of the tensors that each optimizer of a run treats, in the order of its numbers for them.
using OptimizerTensors = std::vector<std::vector<TensorSpec>>;

/// The parts of an engine that its groups share.
struct GroupContext {
  const StatesOptions* options = nullptr;  // as they are carried out; outlive the groups
  Travel weights = {}, gradients = {};
  Communicator* sharing = nullptr;     // the ranks that share one copy of the states; at stage 0 all ranks
  Communicator* sums = nullptr;        // the same ranks, for sums of gradients; may be the same communicator
  Communicator* replicas = nullptr;    // the ranks that hold the same parts
  Communicator* slices = nullptr;      // the ranks that hold the other slices of the same tensors
  ShardStore* weight_store = nullptr;  // of divided weights, one shard per group; null: tensors of the device
  OptimizerSet* optimizers = nullptr;
  OptimizerTensors* optimizer_tensors = nullptr;  // groups add theirs
  int stage = 0;                                  // this rank's place along the pipeline axis
};

class ParameterGroup {
 public:
  /// Points the members' leaves at the group's memory. Weights are not yet filled: load() does.
  ParameterGroup(int index, const GroupLayout& layout, const Units& units, const GroupContext& context);

  const GroupSpec& spec() const { return layout_.spec; }
  const FlatLayout& layout() const { return layout_.flat; }
  /// False if it belongs to another stage. Only its description may be used then.
  bool is_here() const { return spec().stage == context_.stage; }
  bool owns(ParameterRef parameter) const;
  const FlatRange& own() const { return own_; }

  WeightBuffer& weights() { return weights_; }
  const WeightBuffer& weights() const { return weights_; }
  /// Only a trained group has it.
  GradientBuffer& gradient() { return *gradient_; }
  const GradientBuffer& gradient() const { return *gradient_; }
  /// The own part's states, by optimizer. Empty if the group is frozen.
  const std::vector<std::unique_ptr<StateShard>>& states() const { return states_; }

  /// Fills weights, master and moments (zero): every rank asks the source for its own part only. Collective.
  void load(WeightSource& source);
  /// The same before others are told: WeightBuffer::gather_updated() must follow. Plain numbers make no collective
  /// call.
  void read(WeightSource& source);
  /// At rest, of weights, and of the gradient of a trained group.
  std::int64_t weight_bytes() const { return is_here() ? layout_.format->rest_bytes() : 0; }
  std::int64_t gradient_bytes() const { return is_here() && spec().trainable ? layout_.rest_gradient_bytes() : 0; }
  /// The most that load() holds beside the group, in bytes of host memory, and that an export of the weights does.
  std::int64_t load_bytes() const { return is_here() ? layout_.format->encode_bytes() : 0; }
  std::int64_t export_bytes() const;
  /// Buffers of the host through which the update passes where states are held elsewhere and weights on a GPU.
  HostUpdate::Shape host_update_shape() const;

  /// All states of a shard of states() in host memory, master weights first (where weights are their own, those; split
  /// ones joined), in ascending chunks counted from its beginning. `read` leaves them; `write` sets them all, and the
  /// own weights with them: gather_updated() must follow. A `read` of some elements alone, counted as chunks are, may
  /// leave out chunks that hold none of them, and does so where it spares their way from a GPU.
  struct StateRange {
    std::int64_t begin = 0, end = std::numeric_limits<std::int64_t>::max();
  };
  using StateVisit = std::function<void(const StateChunk&)>;
  void visit_states(StateShard& shard, StateAccess access, const StateVisit& visit) {
    visit_states(shard, access, StateRange(), visit);
  }
  void visit_states(StateShard& shard, StateAccess access, const StateRange& wanted, const StateVisit& visit);
  /// Plain weights of a range of the own part, in compute type and host memory, in ascending parts.
  void visit_weights(const FlatRange& range, const std::function<void(const at::Tensor& values)>& visit) const;
  /// The states that visit_states() hands out.
  std::vector<StateSpec> visited_states(const StateShard& shard) const;

  /// True if matrix products may write to the gradient: it is held whole, in their type or in fp32, and the context
  /// says so.
  bool fuses_accumulation() const;
  /// Before a backward pass of the micro-batch: where accumulation is fused, products write to the gradient from now
  /// on, until their unit's gradients are collected.
  void expect_gradients(MicroBatch micro);
  /// Packs the gradients of the members in that unit, those of borrowers included, and drops them from the leaves; what
  /// products have written is there. A leaf without a gradient counts as zeros.
  void collect_gradients(int unit, MicroBatch micro);
  /// Takes the gradients of borrowers of the members, whose owner's backward comes in another pass: collect_gradients()
  /// adds them then, those of the first micro-batch first.
  void set_aside_borrowed();
  /// After all members were collected: sums over ranks, once a step or for each micro-batch. Collective.
  void reduce_gradients(MicroBatch micro);
  /// The same where the end of a step is known apart from its last micro-batch. Collective.
  void add_gradients(bool first) { gradient_->add(first); }
  void conclude_gradients();

  /// Drops what was collected and not reduced, of this rank's leaves too.
  void drop_gradients();

  /// The flat elements whose gradient this rank counts in the norm: its 1/N, the same at every stage, so that norms
  /// agree to the bit. gradient().part() holds them.
  FlatRange counted() const { return {layout().shard_begin(ranks().rank()), layout().shard_numel()}; }

  /// A pass of the optimizers over the own part; the last one writes the weights in compute type. `contexts`: by
  /// optimizer, all of the same pass.
  void update(const std::vector<UpdateContext>& contexts);
  /// Passes that the group's optimizers take.
  int passes() const;
  /// Begins to bring in what update() will need, where that takes time.
  void prefetch_update(int pass);
  /// Where update() finds the own part's gradient, on the device of the states, and leaves what is to be transformed.
  at::Tensor update_gradient() const { return host_update_->gradient(gradient_->own()); }

  using TensorSink = std::function<void(const TensorSpec& spec, const at::Tensor& value)>;
  /// Hands every full tensor to the sink, in layout order, in master type: weights or gradients. Collective; one flat
  /// vector of the group is alive meanwhile.
  void export_weights(const TensorSink& sink);
  void export_gradients(const TensorSink& sink) { export_flat(gradient_->own(), sink); }
  /// The type in which export_weights() hands tensors on.
  at::ScalarType exported_type() const { return has_master() ? precision().master : precision().compute; }
  at::ScalarType gradient_type() const { return precision().gradient; }

 private:
  struct Leaf {
    ParameterRef member;
    at::Tensor tensor;
    std::vector<at::Tensor> borrowed;  // leaves of other units over the same memory
    std::deque<at::Tensor> set_aside;  // gradients of borrowers, by micro-batch; undefined: none
    FlatRange range;
    c10::intrusive_ptr<GradientPlace> place;  // null: its gradient comes through autograd alone
  };

  const StatesOptions& options() const { return *context_.options; }
  Communicator& ranks() const { return *context_.sharing; }
  CallTag tag(Phase phase) const;
  const Precision& precision() const { return layout_.precision; }
  bool has_master() const { return !states_.empty() && states_.front()->has_master(); }
  bool stores_weights() const { return is_here() && layout_.weights == Placement::sharded && context_.weight_store; }
  std::unique_ptr<ShardHome> home_of_weights() const;
  WeightBuffer make_weights() const;
  GradientBuffer make_gradient() const;
  std::unique_ptr<StateShard> make_states(StateLayout layout) const;
  std::vector<StateLayout> state_layouts(const Units& units);
  static void add_borrowed(Leaf& leaf, at::Tensor& sum);
  void point_leaves(const Units& units, const at::Tensor& flat);
  WeightReader reader_of(WeightSource& source) const;
  void load_states(WeightSource& source, const at::Tensor& weights);
  at::Tensor joined(const TensorSpec& spec, const at::Tensor& slice) const;
  void export_flat(const at::Tensor& own, const TensorSink& sink);
  void read_range_as(WeightSource& source, GgmlType type, const FlatRange& range, const at::Tensor& blocks) const;
  void read_into(WeightSource& source, std::int64_t begin, const at::Tensor& values) const;
  void read_range(WeightSource& source, std::int64_t begin, const at::Tensor& values) const;

  int index_;
  GroupLayout layout_;
  GroupContext context_;
  FlatRange own_;
  std::vector<Leaf> leaves_;
  std::vector<FlatRange> used_;  // of the leaves
  WeightBuffer weights_;
  std::optional<GradientBuffer> gradient_;
  std::vector<std::unique_ptr<StateShard>> states_;
  std::optional<HostUpdate> host_update_;  // of a trained group
};

}  // namespace zero
