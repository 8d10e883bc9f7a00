#include "comm/self_communicator.h"

#include <ATen/core/Tensor.h>

#include "comm/sum_tree.h"

namespace zero {

SelfCommunicator::SelfCommunicator(Communicator& others) : Communicator(0, 1) {
  memory_.home = &others.memory();
  failures_ = &others.failures();
}

void SelfCommunicator::do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord&) {
  if (full.const_data_ptr() != shard.const_data_ptr()) full.copy_(shard);
}

// On a device, LibTorch adds numbers of two types in the wider type and rounds once.
void SelfCommunicator::do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                                         const CallRecord&) {
  const void* input = full.const_data_ptr();
  if (options.accumulate && full.is_cpu())
    sum_tree({{&input, 1}, full.scalar_type()}, {shard.data_ptr(), shard.scalar_type(), true}, shard.numel(),
             options.sum_type);
  else if (options.accumulate)
    shard.add_(full);
  else if (shard.const_data_ptr() != full.const_data_ptr())
    shard.copy_(full);
}

void SelfCommunicator::do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>&, const at::Tensor& in,
                                     const std::vector<std::int64_t>&, const CallRecord&) {
  out.copy_(in);
}

std::unique_ptr<Communicator> SelfCommunicator::do_split(const std::vector<int>&, const CallRecord&) {
  auto part = std::make_unique<SelfCommunicator>();
  part->memory_.home = memory_.home == &memory_.own ? &part->memory_.own : memory_.home;
  part->failures_ = failures_ == &own_failures_ ? &part->own_failures_ : failures_;
  return part;
}

}  // namespace zero
