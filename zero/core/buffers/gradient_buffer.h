#pragma once
// GradientBuffer: the gradients of a group, from the leaves' to the sum over ranks.
//
// Held whole, micro-batches are added up and summed over ranks once a step, onto the part that this rank is in charge
// of. Divided, each micro-batch is packed into a passing buffer and summed onto the part that is held. Summed in order,
// each micro-batch is summed over ranks at every stage, and micro-batches are along a tree: together the tree over all of
// them, those of a turn side by side by rank, if the ranks are a power of two.
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
    at::ScalarType packed = at::kFloat;  // the leaves' type, in which what passes a buffer does so
    at::ScalarType sum = at::kFloat;     // sums over ranks are held in it
    CallTag tag;
  };
  /// `rest` has a tensor for its home. `replicas`: the ranks that hold the same part. `rungs`: of the rank's 1/N, in the
  /// type of what is at rest, for sums in order; a divided vector is the first of them itself. Empty: sums are not.
  GradientBuffer(ShardedBuffer rest, const Options& options, const Travel& travel, Communicator& replicas,
                 std::vector<at::Tensor> rungs);

  /// Where a micro-batch's gradients go. Where they pass a buffer, what no leaf will write of it (the gaps between
  /// `used` ranges, ascending) is zeroed.
  at::Tensor destination(const std::vector<FlatRange>& used);
  /// True if gradients are added to what the destination holds.
  bool adds(MicroBatch micro) const { return !rest_.is_sharded() && !ladder_ && !micro.first; }
  /// After all of a micro-batch's are there. `done`: what is issued behind the step's last sum, in its stream, with the
  /// part that this rank is in charge of. Collective.
  void reduce(MicroBatch micro, const std::function<void(const at::Tensor& own)>& done);
  /// The same in two: micro-batches are summed one by one, where they are (whole gradients are once, at the end), and
  /// the step's sum is concluded. `first`: of those that were packed in this step. Collective.
  void add(bool first);
  void conclude(const std::function<void(const at::Tensor& own)>& done);

  /// Gives up what was not reduced.
  void drop();

  /// The part that this rank is in charge of.
  at::Tensor own() const;
  /// The rank's 1/N of the gradient, the same range at every stage.
  at::Tensor part() const;

 private:
  CallTag tag() const { return {Phase::reduce, options_.tag.unit, options_.tag.group}; }
  void add_in_order(bool first);
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
