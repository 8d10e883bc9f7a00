#pragma once
// ShardedBuffer: a flat vector that the ranks of an axis share: divided, so that each holds its part, or held whole by
// each, who then is in charge of its part alone or of everything. Weights and gradients are such buffers. An optimizer's
// states lie over the same parts, but nobody gathers them (zero/core/states/state_shard.h).
#include <memory>

#include "comm/communicator.h"
#include "zero/core/buffers/flat_layout.h"
#include "zero/core/buffers/shard_lease.h"
#include "zero/core/shard_plan.h"

namespace zero {

class ShardedBuffer {
 public:
  /// `own`: what this rank is in charge of, of a vector of `numel` elements; all of it where all ranks do the same. The
  /// home holds the own part where the placement is sharded, else everything. The communicator outlives this.
  ShardedBuffer(Placement placement, FlatRange own, std::int64_t numel, Communicator& ranks,
                std::unique_ptr<ShardHome> home)
      : placement_(placement), own_(own), owns_all_(own.numel == numel), ranks_(&ranks), home_(std::move(home)) {}

  bool is_sharded() const { return placement_ == Placement::sharded; }
  bool owns_all() const { return owns_all_; }
  Communicator& ranks() const { return *ranks_; }

  /// What this rank holds. `changes`: it is written to.
  ShardLease at_rest(bool changes) const { return ShardLease(*home_, changes); }
  /// Its own part of that.
  at::Tensor own_of(const at::Tensor& at_rest) const {
    return is_sharded() || owns_all_ ? at_rest : at_rest.narrow(0, own_.begin, own_.numel);
  }
  /// Begins to bring it in; a hint.
  void fetch() const { home_->fetch(); }

  /// full <- the parts of all ranks, of a divided vector; `place`: where the own part lies in full, past autograd.
  /// Collective.
  void gather(const at::Tensor& full, const at::Tensor& place, CallTag tag) const;
  /// Of a vector that each holds: everybody's own parts become known. Collective.
  void gather_in_place(CallTag tag) const;
  /// The own part <- (or, of a divided vector, +=) the sum over ranks of `full`, which of a vector that each holds is that
  /// itself. Collective.
  void reduce(const at::Tensor& full, ReduceOptions options, CallTag tag) const;

 private:
  Placement placement_;
  FlatRange own_;
  bool owns_all_;
  Communicator* ranks_;
  std::unique_ptr<ShardHome> home_;
};

}  // namespace zero
