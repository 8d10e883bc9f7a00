#pragma once
// GradientBuffer: the gradients of a group, from the leaves to the sum over ranks.
//
// - Resident: the leaves' gradients of all micro-batches are added up. Once a step the sum over ranks goes onto the
//   part that this rank owns.
// - Sharded: each micro-batch is packed into a passing buffer and reduce-scattered onto the part at rest.
// - In order: each micro-batch is summed over ranks at every stage, and micro-batches are summed along a tree. Both are
//   one tree over all micro-batches, ordered by (micro-batch, rank). A power of two of ranks makes a branch of it, which
//   a reduce-scatter sums. Parts of other numbers of ranks come by an all-to-all, and are added in their turns.
#include <functional>
#include <optional>
#include <vector>

#include "zero/core/buffers/sharded_buffer.h"
#include "zero/core/buffers/sum_ladder.h"
#include "zero/core/buffers/travel.h"

namespace zero {

/// Position of a micro-batch in its step.
struct MicroBatch {
  bool first = true;
  bool last = true;
};

class GradientBuffer {
 public:
  struct Options {
    std::int64_t numel = 0;              // of the whole vector
    at::ScalarType packed = at::kFloat;  // the leaves' type, also of a passing buffer
    at::ScalarType sum = at::kFloat;     // sums over ranks are accumulated in it
    CallTag tag;
  };
  /// The home of `rest` must be a tensor. `replicas`: the ranks that hold the same part. `rungs`: for sums in order,
  /// tensors of the rank's 1/N elements in the type at rest; empty: sums are not in order. A sharded gradient is the
  /// first rung itself, before these.
  GradientBuffer(ShardedBuffer rest, const Options& options, const Travel& travel, Communicator& replicas,
                 std::vector<at::Tensor> rungs);

  /// Returns the flat vector for the gradients of a micro-batch. In a passing buffer it zeroes the gaps between the
  /// `used` ranges (ascending), which no leaf writes.
  at::Tensor destination(const std::vector<FlatRange>& used);
  /// True if gradients are added to the values in the destination.
  bool adds(MicroBatch micro) const { return !rest_.is_sharded() && !ladder_ && !micro.first; }
  /// Call it when all gradients of a micro-batch are in the destination. After the step's last sum it calls `done` with
  /// the part that this rank owns; `done` issues work in the sum's stream. Collective.
  void reduce(MicroBatch micro, const std::function<void(const at::Tensor& own)>& done);
  /// The two halves of reduce(). add() sums one micro-batch over ranks, unless the gradient is whole and unordered:
  /// conclude() sums that one once. `first`: the first micro-batch that was packed in this step. conclude() ends the
  /// step's sum. Both are collective.
  void add(bool first);
  void conclude(const std::function<void(const at::Tensor& own)>& done);

  /// Drops gradients that were packed and not reduced.
  void drop();

  /// The part that this rank owns.
  at::Tensor own() const;
  /// The rank's 1/N of the gradient, the same range at every stage.
  at::Tensor part() const;

 private:
  CallTag tag() const { return {Phase::reduce, options_.tag.unit, options_.tag.group}; }
  void add_in_order(bool first);
  void add_in_turns(const at::Tensor& full);
  void conclude_in_order();

  ShardedBuffer rest_;
  Options options_;
  Travel travel_;
  Communicator* replicas_;
  std::optional<SumLadder> ladder_;
  at::Tensor packed_;  // while it is being filled
  int buffer_ = -1;
};

}  // namespace zero
