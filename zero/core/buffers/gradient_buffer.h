#pragma once
// GradientBuffer: the gradients of a group, from the leaves to the sum over ranks.
//
// - Resident: the leaves' gradients are added up over all micro-batches. Once per step they are summed over ranks into
//   the part that this rank owns.
// - Sharded: each micro-batch is packed into a passing buffer and reduce-scattered into the part at rest.
// - In order: at every stage, each micro-batch is summed over ranks, and micro-batches are then summed. The two sums
//   form one tree over all micro-batches, ordered by (micro-batch, rank). If the number of ranks is a power of two, the
//   ranks form a branch of the tree, and a reduce-scatter sums it. Otherwise an all-to-all brings the parts, which are
//   added one by one.
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
    at::ScalarType packed = at::kFloat;  // the leaves' type; a passing buffer has it too
    at::ScalarType sum = at::kFloat;     // type in which sums over ranks are accumulated
    CallTag tag;
  };
  /// The home of `rest` must be a tensor. `replicas`: the ranks that hold the same part. `rungs`: for sums in order,
  /// tensors of the rank's 1/N elements in the type at rest; empty: sums are not in order. A sharded gradient is itself
  /// the first rung, before `rungs`.
  GradientBuffer(ShardedBuffer rest, const Options& options, const Travel& travel, Communicator& replicas,
                 std::vector<at::Tensor> rungs);

  /// Returns the flat vector for the gradients of a micro-batch. In a passing buffer, zeroes the gaps between the
  /// `used` ranges (ascending), since no leaf writes there.
  at::Tensor destination(const std::vector<FlatRange>& used);
  /// Returns true if destination() needs no buffer, has one, or would get one now.
  bool has_room() const;
  /// Returns true if gradients are added to the values in the destination.
  bool adds(MicroBatch micro) const { return !rest_.is_sharded() && !ladder_ && !micro.first; }
  /// Call it when all gradients of a micro-batch are in the destination. After the step's last sum, calls `done` with
  /// the part that this rank owns. `done` issues its work in the sum's stream. Collective.
  void reduce(MicroBatch micro, const std::function<void(const at::Tensor& own)>& done);
  /// The two halves of reduce(). add() sums one micro-batch over ranks. If the gradient is resident and sums are not in
  /// order, add() sums nothing, and conclude() sums once. `first`: true for the first micro-batch that was packed in
  /// this step. conclude() ends the step's sum. Both are collective.
  void add(bool first);
  void conclude(const std::function<void(const at::Tensor& own)>& done);

  /// Drops gradients that were packed but not reduced.
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
