#include "comm/staged_communicator.h"

#include <ATen/ATen.h>

namespace zero {
namespace {

/// The options as a caller gives them: integers are summed exactly whatever they say.
ReduceOptions as_asked(ReduceOptions options) {
  if (c10::isIntegralType(options.sum_type, false)) options.sum_type = at::kFloat;
  return options;
}

}  // namespace

StagedCommunicator::StagedCommunicator(std::unique_ptr<Communicator> host, at::Device device)
    : Communicator(host->rank(), host->size()), host_(std::move(host)), device_(device) {}

at::Tensor StagedCommunicator::allocate(std::int64_t numel, at::ScalarType type) {
  return at::empty({numel}, at::TensorOptions().dtype(type).device(device_));
}

/// A host tensor of the same shape; copies wait for the current stream.
at::Tensor StagedCommunicator::stage(const at::Tensor& tensor, bool with_contents) const {
  const at::Tensor host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(device_.is_cuda()));
  if (with_contents) host.copy_(tensor);
  return host;
}

void StagedCommunicator::do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) {
  const at::Tensor whole = stage(full, false);
  host_->all_gather_into(whole, stage(shard, true), call.tag);
  full.copy_(whole);
}

void StagedCommunicator::do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                                           const CallRecord& call) {
  const at::Tensor part = stage(shard, options.accumulate);
  host_->reduce_scatter(part, stage(full, true), as_asked(options), call.tag);
  shard.copy_(part);
}

void StagedCommunicator::do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) {
  const at::Tensor host = stage(tensor, true);
  host_->all_reduce(host, as_asked(options), call.tag);
  tensor.copy_(host);
}

void StagedCommunicator::do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) {
  const at::Tensor host = stage(tensor, rank() == root);
  host_->broadcast(host, root, call.tag);
  if (rank() != root) tensor.copy_(host);
}

void StagedCommunicator::do_send(const at::Tensor& tensor, int to, const CallRecord& call) {
  host_->send(stage(tensor, true), to, call.tag);
}

void StagedCommunicator::do_recv(const at::Tensor& tensor, int from, const CallRecord& call) {
  const at::Tensor host = stage(tensor, false);
  host_->recv(host, from, call.tag);
  tensor.copy_(host);
}

void StagedCommunicator::do_barrier(const CallRecord& call) {
  stage(at::zeros({1}, at::TensorOptions().device(device_)), true);  // what was issued before is done
  host_->barrier(call.tag);
}

std::unique_ptr<Communicator> StagedCommunicator::do_split(int color, int key, const CallRecord&) {
  return std::make_unique<StagedCommunicator>(host_->split(color, key), device_);
}

}  // namespace zero
