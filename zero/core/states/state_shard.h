#pragma once
// StateShard: the states of one optimizer for its tensors in a group's own part, and the update of these states.
#include <functional>
#include <memory>
#include <vector>

#include "offload/state_store.h"
#include "zero/core/states/state_layout.h"
#include "zero/core/states/wide_spans.h"

namespace zero {

class StateShard {
 public:
  /// `own`: the flat elements that this rank updates. `states`: the optimizer's states as stored. Before them comes
  /// "master" if the weights are not their own master, or "remainder" if the master is split. `seed`: the key for
  /// stochastic rounding. `optimizer`, and everything the store needs, must outlive this object.
  StateShard(const Optimizer& optimizer, StateLayout layout, FlatRange own, const std::vector<StateSpec>& states,
             const std::function<std::unique_ptr<StateStore>(std::int64_t elements)>& make_store, at::Device device,
             std::uint64_t seed = 0);

  const Optimizer& optimizer() const { return optimizer_; }
  const StateLayout& layout() const { return layout_; }
  /// The shard holds numel() elements of the layout, starting at begin().
  std::int64_t begin() const { return begin_; }
  std::int64_t numel() const { return store_->elements(); }
  /// has_master(): the weights are not their own master. splits_master(): the master consists of the weights and a
  /// remainder.
  bool has_master() const { return has_master_; }
  bool splits_master() const { return splits_master_; }
  StateStore& store() { return *store_; }
  const StateStore& store() const { return *store_; }

  /// Runs the optimizer's pass `context` over the shard. Weights and gradient are flat vectors of the own part, on the
  /// states' device. Does nothing in a pass that the optimizer does not have.
  void update(const UpdateContext& context, const at::Tensor& weights, const at::Tensor& gradient);

  /// Returns the segments of the shard's elements [begin, end), ascending, in parts of at most `longest` elements.
  /// Their `begin` counts from the beginning of the shard, and their `flat_begin` from the beginning of the own part.
  std::vector<StateSegment> segments(std::int64_t begin, std::int64_t end,
                                     std::int64_t longest = std::int64_t{1} << 40) const;
  /// Returns elements [begin, begin + count) of the shard as tensors, one per state in their order. All elements must
  /// be in the chunk.
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
