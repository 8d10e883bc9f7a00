#pragma once
// ParameterGroup: the parameters of one group as flat vectors, and the parts that a rank holds.
//
// Held by a rank, for P elements, at rest:
//                  stage 0   stage 1   stage 2   stage 3
//   weights        P         P         P         P/N      compute type; leaves are views of the full vector
//   gradient       P         P         P/N       P/N      gradient type
//   states         P each    P/N       P/N       P/N      master weights, unless weights are their own, and what the
//                                                         optimizer keeps; per-tensor numbers are on every rank
// A rank knows only the layout of another pipeline stage's group, and holds none of its values. A frozen group has only
// weights. If they have a format of their own (FrozenFormat), the full vector is gathered on use at every stage, as at
// stage 3. The "own part" is the part of the flat vector whose optimizer state this rank holds.
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

/// The shapes of the tensors that each optimizer of a run treats, in the optimizer's numbering.
using OptimizerTensors = std::vector<std::vector<TensorSpec>>;

/// The parts of an engine that its groups share.
struct GroupContext {
  const StatesOptions* options = nullptr;  // the options in effect; must outlive the groups
  Travel weights = {}, gradients = {};
  Communicator* sharing = nullptr;     // the ranks that share one copy of the states; at stage 0 all ranks
  Communicator* sums = nullptr;        // the same ranks, for sums of gradients; may be the same communicator
  Communicator* replicas = nullptr;    // the ranks that hold the same parts
  Communicator* slices = nullptr;      // the ranks that hold the other slices of the same tensors
  ShardStore* weight_store = nullptr;  // for sharded weights, one shard per group; null: tensors on the device
  OptimizerSet* optimizers = nullptr;
  OptimizerTensors* optimizer_tensors = nullptr;  // each group adds its tensors
  int stage = 0;                                  // this rank's index along the pipeline axis
};

class ParameterGroup {
 public:
  /// Points the members' leaves at the group's memory. load() then fills the weights.
  ParameterGroup(int index, const GroupLayout& layout, const Units& units, const GroupContext& context);

  const GroupSpec& spec() const { return layout_.spec; }
  const FlatLayout& layout() const { return layout_.flat; }
  /// Returns false if the group belongs to another pipeline stage. Only its description may be used then.
  bool is_here() const { return spec().stage == context_.stage; }
  bool owns(ParameterRef parameter) const;
  const FlatRange& own() const { return own_; }

  WeightBuffer& weights() { return weights_; }
  const WeightBuffer& weights() const { return weights_; }
  /// Only trained groups have a gradient.
  GradientBuffer& gradient() { return *gradient_; }
  const GradientBuffer& gradient() const { return *gradient_; }
  /// The own part's states, by optimizer. Empty if the group is frozen.
  const std::vector<std::unique_ptr<StateShard>>& states() const { return states_; }

  /// Fills the weights and master weights, and zeroes the moments. Every rank reads only its own part from the source.
  /// Collective.
  void load(WeightSource& source);
  /// Does the same without distributing the weights: WeightBuffer::gather_updated() must follow. Plain formats make no
  /// collective call.
  void read(WeightSource& source);
  /// Bytes at rest: of the weights, and of a trained group's gradient.
  std::int64_t weight_bytes() const { return is_here() ? layout_.format->rest_bytes() : 0; }
  std::int64_t gradient_bytes() const { return is_here() && spec().trainable ? layout_.rest_gradient_bytes() : 0; }
  /// Peak host memory in bytes that load() and export_weights() take in addition to the group.
  std::int64_t load_bytes() const { return is_here() ? layout_.format->encode_bytes() : 0; }
  std::int64_t export_bytes() const;
  /// Shape of the host buffers that the update uses if weights are on a GPU and states are elsewhere.
  HostUpdate::Shape host_update_shape() const;

  /// Visits all states of a shard of states() in host memory, in ascending chunks that count from the shard's
  /// beginning. Master weights come first: the weights if they are their own master, or a split master joined. `read`
  /// leaves states unchanged. `write` sets all states and the own weights; gather_updated() must follow. A `read` with
  /// a range may skip chunks outside the range, and does so if that avoids copies from a GPU.
  struct StateRange {
    std::int64_t begin = 0, end = std::numeric_limits<std::int64_t>::max();
  };
  using StateVisit = std::function<void(const StateChunk&)>;
  void visit_states(StateShard& shard, StateAccess access, const StateVisit& visit) {
    visit_states(shard, access, StateRange(), visit);
  }
  void visit_states(StateShard& shard, StateAccess access, const StateRange& wanted, const StateVisit& visit);
  /// Visits the plain weights of a range of the own part, in the compute type and host memory, in ascending parts.
  void visit_weights(const FlatRange& range, const std::function<void(const at::Tensor& values)>& visit) const;
  /// Returns the states that visit_states() visits.
  std::vector<StateSpec> visited_states(const StateShard& shard) const;

  /// Returns the type of the vector to which matrix products write gradients (StatesOptions::write_gradients and
  /// fuse_accumulation). None: autograd brings them.
  std::optional<at::ScalarType> written_gradient() const;
  /// True at the stages at which each rank holds the group's full gradient.
  bool holds_full_gradient() const { return layout_.gradient == Placement::resident; }
  /// Lets matrix products write to the gradient, if they do, until their unit's gradients are collected. Call it before
  /// a micro-batch's backward pass. If a sharded gradient is that of one unit, call it before that unit's backward,
  /// since it holds a buffer from then on.
  void expect_gradients(MicroBatch micro);
  /// Packs the gradients of the members in that unit, including those of borrowers, and drops them from the leaves.
  /// Gradients that matrix products have written are already packed. A leaf without a gradient counts as zeros.
  void collect_gradients(int unit, MicroBatch micro);
  /// Sets aside the gradients of the members' borrowers if the owner's backward runs in another pass.
  /// collect_gradients() then adds them, in the order of micro-batches.
  void set_aside_borrowed();
  /// Sums over ranks, once per step or for each micro-batch. Call it after all members were collected. Collective.
  void reduce_gradients(MicroBatch micro);
  /// The two halves of reduce_gradients(), for callers that learn of a step's end only after its last micro-batch.
  /// Collective.
  void add_gradients(bool first) { gradient_->add(first); }
  void conclude_gradients();

  /// Drops gradients that were collected but not reduced, and those of this rank's leaves.
  void drop_gradients();

  /// The flat elements whose gradient this rank counts in the norm: its 1/N, the same at every stage. The norm is
  /// therefore the same bit for bit at every stage. gradient().part() holds these elements.
  FlatRange counted() const { return {layout().shard_begin(ranks().rank()), layout().shard_numel()}; }

  /// Runs one pass of the optimizers over the own part. The last pass writes the weights in the compute type.
  /// `contexts`: by optimizer, all for the same pass.
  void update(const std::vector<UpdateContext>& contexts);
  /// Number of passes that the group's optimizers need.
  int passes() const;
  /// Starts to bring in the states that update() will need, if that takes time.
  void prefetch_update(int pass);
  /// The own part's gradient as update() reads it, on the states' device. An update also leaves in this tensor the
  /// values that are to be transformed.
  at::Tensor update_gradient() const { return host_update_->gradient(gradient_->own()); }

  using TensorSink = std::function<void(const TensorSpec& spec, const at::Tensor& value)>;
  /// Hands every full tensor, weight or gradient, to the sink, in layout order and in the master type. Takes memory for
  /// one flat vector of the group. Collective.
  void export_weights(const TensorSink& sink);
  void export_gradients(const TensorSink& sink) { export_flat(gradient_->own(), sink); }
  /// The type of the tensors that export_weights() passes to its sink.
  at::ScalarType exported_type() const { return has_master() ? precision().master : precision().compute; }
  at::ScalarType gradient_type() const { return precision().gradient; }

 private:
  struct Leaf {
    ParameterRef member;
    at::Tensor tensor;
    std::vector<at::Tensor> borrowed;  // leaves of other units that use the same memory
    std::deque<at::Tensor> set_aside;  // gradients of borrowers, by micro-batch; undefined: none
    FlatRange range;
    c10::intrusive_ptr<GradientPlace> place;  // null: the gradient comes from autograd only
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
