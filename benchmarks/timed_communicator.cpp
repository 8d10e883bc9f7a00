#include "benchmarks/timed_communicator.h"

#include <chrono>

namespace zero {

template <class Call>
void TimedCommunicator::time(Phase phase, const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  seconds_[static_cast<std::size_t>(phase)] +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void TimedCommunicator::do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) {
  time(call.tag.phase, [&] { ForwardingCommunicator::do_all_gather(full, shard, call); });
}

void TimedCommunicator::do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                                          const CallRecord& call) {
  time(call.tag.phase, [&] { ForwardingCommunicator::do_reduce_scatter(shard, full, options, call); });
}

void TimedCommunicator::do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) {
  time(call.tag.phase, [&] { ForwardingCommunicator::do_all_reduce(tensor, options, call); });
}

void TimedCommunicator::do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) {
  time(call.tag.phase, [&] { ForwardingCommunicator::do_broadcast(tensor, root, call); });
}

void TimedCommunicator::do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts,
                                      const at::Tensor& in, const std::vector<std::int64_t>& in_counts,
                                      const CallRecord& call) {
  time(call.tag.phase, [&] { ForwardingCommunicator::do_all_to_all(out, out_counts, in, in_counts, call); });
}

void TimedCommunicator::do_send(const at::Tensor& tensor, int to, const CallRecord& call) {
  time(call.tag.phase, [&] { ForwardingCommunicator::do_send(tensor, to, call); });
}

void TimedCommunicator::do_recv(const at::Tensor& tensor, int from, const CallRecord& call) {
  time(call.tag.phase, [&] { ForwardingCommunicator::do_recv(tensor, from, call); });
}

void TimedCommunicator::do_settle(const CallRecord& call) {
  time(call.tag.phase, [&] { ForwardingCommunicator::do_settle(call); });
}

void TimedCommunicator::do_barrier(const CallRecord& call) {
  time(call.tag.phase, [&] { ForwardingCommunicator::do_barrier(call); });
}

}  // namespace zero
