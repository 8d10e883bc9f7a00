#pragma once
// TimedCommunicator: wraps a communicator and records the seconds spent in its calls by phase. Waiting for other ranks
// counts. Calls of communicators split from it do not count.
#include <array>

#include "comm/decorators/forwarding_communicator.h"

namespace zero {

class TimedCommunicator final : public ForwardingCommunicator {
 public:
  explicit TimedCommunicator(Communicator& inner) : ForwardingCommunicator(inner) {}

  double seconds(Phase phase) const { return seconds_[static_cast<std::size_t>(phase)]; }
  void reset() { seconds_ = {}; }

 private:
  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override;
  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override;
  void do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) override;
  void do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) override;
  void do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                     const std::vector<std::int64_t>& in_counts, const CallRecord& call) override;
  void do_send(const at::Tensor& tensor, int to, const CallRecord& call) override;
  void do_recv(const at::Tensor& tensor, int from, const CallRecord& call) override;
  void do_settle(const CallRecord& call) override;
  void do_barrier(const CallRecord& call) override;

  template <class Call>
  void time(Phase phase, const Call& call);

  std::array<double, 16> seconds_{};
};

}  // namespace zero
