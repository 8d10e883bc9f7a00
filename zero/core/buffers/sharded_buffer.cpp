#include "zero/core/buffers/sharded_buffer.h"

#include <ATen/ATen.h>

namespace zero {

void ShardedBuffer::gather(const at::Tensor& full, const at::Tensor& place, CallTag tag) const {
  const ShardLease own = at_rest(false);
  if (!home_->passes_buffer()) return ranks_->all_gather_into(full, own.tensor(), tag);
  place.copy_(own.tensor(), /*non_blocking=*/home_->keeps_addresses());
  ranks_->all_gather_into(full, place, tag);
}

void ShardedBuffer::gather_in_place(CallTag tag) const {
  const ShardLease whole = at_rest(true);
  ranks_->all_gather_into(whole.tensor(), own_of(whole.tensor()), tag);
}

void ShardedBuffer::reduce(const at::Tensor& full, ReduceOptions options, CallTag tag) const {
  const ShardLease rest = at_rest(true);
  if (!is_sharded() && owns_all_)
    ranks_->all_reduce(rest.tensor(), options, tag);
  else
    ranks_->reduce_scatter(own_of(rest.tensor()), full, options, tag);
}

}  // namespace zero
