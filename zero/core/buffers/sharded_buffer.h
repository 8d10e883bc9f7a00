#pragma once
// ShardedBuffer: a flat vector that the ranks of an axis share. If it is sharded, each rank holds its part. If it is
// resident, each rank holds all of it and owns its part or everything. Weights and gradients are such buffers. An
// optimizer's states are divided the same way, but are never gathered (zero/core/states/state_shard.h).
#include <memory>

#include "comm/communicator.h"
#include "zero/core/buffers/flat_layout.h"
#include "zero/core/buffers/shard_lease.h"
#include "zero/core/shard_plan.h"

namespace zero {

class ShardedBuffer {
 public:
  /// `own`: the part that this rank owns, of a vector of `numel` elements; everything if all ranks do the same work.
  /// The home of a sharded vector holds the own part, that of a resident vector holds everything. The communicator must
  /// outlive this object.
  ShardedBuffer(Placement placement, FlatRange own, std::int64_t numel, Communicator& ranks,
                std::unique_ptr<ShardHome> home)
      : placement_(placement), own_(own), owns_all_(own.numel == numel), ranks_(&ranks), home_(std::move(home)) {}

  bool is_sharded() const { return placement_ == Placement::sharded; }
  bool owns_all() const { return owns_all_; }
  Communicator& ranks() const { return *ranks_; }

  /// Returns the memory that this rank holds. `changes`: the caller writes to it.
  ShardLease at_rest(bool changes) const { return ShardLease(*home_, changes); }
  /// Returns the own part of that memory.
  at::Tensor own_of(const at::Tensor& at_rest) const {
    return is_sharded() || owns_all_ ? at_rest : at_rest.narrow(0, own_.begin, own_.numel);
  }
  /// Starts to bring that memory in. This is only a hint.
  void fetch() const { home_->fetch(); }

  /// All-gathers a sharded vector into `full`. `place` is the own part inside `full`, without autograd. Collective.
  void gather(const at::Tensor& full, const at::Tensor& place, CallTag tag) const;
  /// All-gathers the own parts of a resident vector in place. Collective.
  void gather_in_place(CallTag tag) const;
  /// Sums `full` over ranks into the own part, or adds the sum to it if the vector is sharded and the options say so.
  /// For a resident vector `full` is the memory at rest itself. Collective.
  void reduce(const at::Tensor& full, ReduceOptions options, CallTag tag) const;

 private:
  Placement placement_;
  FlatRange own_;
  bool owns_all_;
  Communicator* ranks_;
  std::unique_ptr<ShardHome> home_;
};

}  // namespace zero
