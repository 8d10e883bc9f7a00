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
  time(call.tag.phase, [&] { inner_.all_gather_into(full, shard, call.tag); });
}

void TimedCommunicator::do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                                          const CallRecord& call) {
  time(call.tag.phase, [&] { inner_.reduce_scatter(shard, full, options, call.tag); });
}

void TimedCommunicator::do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) {
  time(call.tag.phase, [&] { inner_.all_reduce(tensor, options, call.tag); });
}

void TimedCommunicator::do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) {
  time(call.tag.phase, [&] { inner_.broadcast(tensor, root, call.tag); });
}

void TimedCommunicator::do_send(const at::Tensor& tensor, int to, const CallRecord& call) {
  time(call.tag.phase, [&] { inner_.send(tensor, to, call.tag); });
}

void TimedCommunicator::do_recv(const at::Tensor& tensor, int from, const CallRecord& call) {
  time(call.tag.phase, [&] { inner_.recv(tensor, from, call.tag); });
}

void TimedCommunicator::do_barrier(const CallRecord& call) {
  time(call.tag.phase, [&] { inner_.barrier(call.tag); });
}

std::unique_ptr<Communicator> TimedCommunicator::do_split(int color, int key, const CallRecord&) {
  return inner_.split(color, key);
}

}  // namespace zero
