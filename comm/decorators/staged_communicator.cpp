#include "comm/decorators/staged_communicator.h"

#include <ATen/ATen.h>

namespace zero {

StagedCommunicator::StagedCommunicator(std::unique_ptr<Communicator> host, at::Device device)
    : ForwardingCommunicator(*host), host_(std::move(host)), device_(device), memory_(device) {}

/// A host tensor of the same shape. Copies wait for the current stream.
at::Tensor StagedCommunicator::stage(const at::Tensor& tensor, bool with_contents) const {
  const at::Tensor host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(device_.is_cuda()));
  if (with_contents) host.copy_(tensor);
  return host;
}

void StagedCommunicator::do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) {
  const at::Tensor whole = stage(full, false);
  ForwardingCommunicator::do_all_gather(whole, stage(shard, true), call);
  full.copy_(whole);
}

void StagedCommunicator::do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                                           const CallRecord& call) {
  const at::Tensor part = stage(shard, options.accumulate);
  ForwardingCommunicator::do_reduce_scatter(part, stage(full, true), options, call);
  shard.copy_(part);
}

void StagedCommunicator::do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) {
  const at::Tensor host = stage(tensor, true);
  ForwardingCommunicator::do_all_reduce(host, options, call);
  tensor.copy_(host);
}

void StagedCommunicator::do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) {
  const at::Tensor host = stage(tensor, rank() == root);
  ForwardingCommunicator::do_broadcast(host, root, call);
  if (rank() != root) tensor.copy_(host);
}

void StagedCommunicator::do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts,
                                       const at::Tensor& in, const std::vector<std::int64_t>& in_counts,
                                       const CallRecord& call) {
  const at::Tensor host = stage(out, false);
  ForwardingCommunicator::do_all_to_all(host, out_counts, stage(in, true), in_counts, call);
  out.copy_(host);
}

void StagedCommunicator::do_send(const at::Tensor& tensor, int to, const CallRecord& call) {
  sent_.push_back(stage(tensor, true));
  ForwardingCommunicator::do_send(sent_.back(), to, call);
}

void StagedCommunicator::do_recv(const at::Tensor& tensor, int from, const CallRecord& call) {
  const at::Tensor host = stage(tensor, false);
  ForwardingCommunicator::do_recv(host, from, call);
  tensor.copy_(host);
}

void StagedCommunicator::do_settle(const CallRecord& call) {
  ForwardingCommunicator::do_settle(call);
  sent_.clear();
}

void StagedCommunicator::do_barrier(const CallRecord& call) {
  stage(at::zeros({1}, at::TensorOptions().device(device_)), true);  // waits for all work issued before
  ForwardingCommunicator::do_barrier(call);
}

std::unique_ptr<Communicator> StagedCommunicator::do_split(const std::vector<int>& ranks, const CallRecord&) {
  return std::make_unique<StagedCommunicator>(inner().split(ranks), device_);
}

}  // namespace zero
