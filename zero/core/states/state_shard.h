#pragma once
// StateShard: the states of one optimizer for its tensors in a group's own part, and the update that runs over them.
#include <functional>
#include <memory>
#include <vector>

#include "offload/state_store.h"
#include "zero/core/states/state_layout.h"
#include "zero/core/states/wide_spans.h"

namespace zero {

/// One pass of a step over all states.
struct UpdatePass {
  int pass = 0;
  StepFactors factors;  // of the optimizer, with the run's learning rate
  Statistics* statistics = nullptr;
  const at::Tensor* numbers = nullptr;  // StepNumbers of a GPU
  double own_lr = 0;                    // the optimizer's own learning rate
  double schedule = 1;                  // of StepRates
};

class StateShard {
 public:
  /// `own`: the flat elements that this rank is in charge of.
  /// `states`: the optimizer's as they are stored, before them "master" where the weights are not their own, or "remainder"
  /// where it is split. `seed`: of their rounding. Both `optimizer` and whatever the store needs outlive this.
  StateShard(const Optimizer& optimizer, StateLayout layout, FlatRange own, const std::vector<StateSpec>& states,
             const std::function<std::unique_ptr<StateStore>(std::int64_t elements)>& make_store, at::Device device,
             std::uint64_t seed = 0);

  const Optimizer& optimizer() const { return optimizer_; }
  const StateLayout& layout() const { return layout_; }
  /// Of the layout's elements, those of this shard.
  std::int64_t begin() const { return begin_; }
  std::int64_t numel() const { return store_->elements(); }
  /// The first is true if the weights are not the master, the second if it is the weights and a remainder.
  bool has_master() const { return has_master_; }
  bool splits_master() const { return splits_master_; }
  StateStore& store() { return *store_; }
  const StateStore& store() const { return *store_; }

  /// Both of the own part, on the states' device. A pass in which the optimizer has nothing to do does nothing.
  void update(const UpdatePass& pass, const at::Tensor& weights, const at::Tensor& gradient);

  /// Segments of the own part; flat_begin counts from its beginning, begin from that of this shard.
  const std::vector<StateSegment>& segments() const { return segments_; }
  /// visit(segment) with those parts of the segments that lie in a chunk, cut at its ends.
  void for_each_segment(const StateChunk& chunk, const std::function<void(const StateSegment&)>& visit) const;
  /// Elements [begin, begin + count) of the shard, of which all lie in the chunk, as tensors: all states in their order.
  std::vector<at::Tensor> view(const StateChunk& chunk, std::int64_t begin, std::int64_t count) const;

 private:
  void update_segment(const UpdatePass& pass, const StateChunk& chunk, const StateSegment& segment,
                      const at::Tensor& weights, const at::Tensor& gradient);
  void update_wide(const UpdateSpan& stored, const UpdateContext& context, std::int64_t begin) const;

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
