#pragma once
// StateShard: the states of one optimizer for its tensors in a group's own part, and the update that runs over them.
#include <functional>
#include <memory>
#include <vector>

#include "offload/state_store.h"
#include "zero/core/states/state_layout.h"
#include "zero/core/states/wide_spans.h"

namespace zero {

class StateShard {
 public:
  /// `own`: the flat elements that this rank is in charge of. `states`: the optimizer's as they are stored; before them
  /// "master" where the weights are not their own master, or "remainder" where the master is split. `seed`: the key of
  /// their rounding. Both `optimizer` and whatever the store needs outlive this.
  StateShard(const Optimizer& optimizer, StateLayout layout, FlatRange own, const std::vector<StateSpec>& states,
             const std::function<std::unique_ptr<StateStore>(std::int64_t elements)>& make_store, at::Device device,
             std::uint64_t seed = 0);

  const Optimizer& optimizer() const { return optimizer_; }
  const StateLayout& layout() const { return layout_; }
  /// The shard holds numel() elements of the layout, from begin() on.
  std::int64_t begin() const { return begin_; }
  std::int64_t numel() const { return store_->elements(); }
  /// The first is true if the weights are not the master, the second if it is the weights and a remainder.
  bool has_master() const { return has_master_; }
  bool splits_master() const { return splits_master_; }
  StateStore& store() { return *store_; }
  const StateStore& store() const { return *store_; }

  /// The optimizer's pass `context` over the shard. Weights and gradient are flat, those of the own part, on the
  /// states' device. Does nothing in a pass that the optimizer does not have.
  void update(const UpdateContext& context, const at::Tensor& weights, const at::Tensor& gradient);

  /// The segments of the shard's elements [begin, end), ascending, cut into parts of at most `longest` elements. Their
  /// `begin` counts from the beginning of the shard, their `flat_begin` from that of the own part.
  std::vector<StateSegment> segments(std::int64_t begin, std::int64_t end,
                                     std::int64_t longest = std::int64_t{1} << 40) const;
  /// Elements [begin, begin + count) of the shard, of which all lie in the chunk, as tensors: all states in their
  /// order.
  std::vector<at::Tensor> view(const StateChunk& chunk, std::int64_t begin, std::int64_t count) const;

 private:
  UpdateSpan span_of(const StateChunk& chunk, const StateSegment& part, const at::Tensor& weights,
                     const at::Tensor& gradient) const;
  void store(const UpdateSpan& wide, const UpdateSpan& stored, const StateSegment& part,
             const UpdateContext& context) const;

  const Optimizer& optimizer_;
  StateLayout layout_;
  std::int64_t begin_;
  bool splits_master_, has_master_;
  at::Device device_;
  std::uint64_t seed_;
  WideSpans wide_;
  std::vector<StateSegment> segments_;
  std::unique_ptr<StateStore> store_;
};

}  // namespace zero
