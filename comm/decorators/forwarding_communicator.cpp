#include "comm/decorators/forwarding_communicator.h"

#include <c10/core/ScalarType.h>

namespace zero {
namespace {

/// The options as callers pass them; integer sums are exact anyway.
ReduceOptions as_asked(ReduceOptions options) {
  if (c10::isIntegralType(options.sum_type, false)) options.sum_type = at::kFloat;
  return options;
}

}  // namespace

void ForwardingCommunicator::do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) {
  inner_.all_gather_into(full, shard, call.tag);
}

void ForwardingCommunicator::do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                                               const CallRecord& call) {
  inner_.reduce_scatter(shard, full, as_asked(options), call.tag);
}

void ForwardingCommunicator::do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) {
  inner_.all_reduce(tensor, as_asked(options), call.tag);
}

void ForwardingCommunicator::do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) {
  inner_.broadcast(tensor, root, call.tag);
}

void ForwardingCommunicator::do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts,
                                           const at::Tensor& in, const std::vector<std::int64_t>& in_counts,
                                           const CallRecord& call) {
  inner_.all_to_all(out, out_counts, in, in_counts, call.tag);
}

void ForwardingCommunicator::do_send(const at::Tensor& tensor, int to, const CallRecord& call) {
  inner_.send(tensor, to, call.tag);
}

void ForwardingCommunicator::do_recv(const at::Tensor& tensor, int from, const CallRecord& call) {
  inner_.recv(tensor, from, call.tag);
}

void ForwardingCommunicator::do_settle(const CallRecord& call) { inner_.settle(call.tag); }

void ForwardingCommunicator::do_barrier(const CallRecord& call) { inner_.barrier(call.tag); }

std::unique_ptr<Communicator> ForwardingCommunicator::do_split(const std::vector<int>& ranks, const CallRecord&) {
  return inner_.split(ranks);
}

}  // namespace zero
