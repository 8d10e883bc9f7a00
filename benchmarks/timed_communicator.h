#pragma once
// TimedCommunicator: another communicator, with the seconds spent in its calls by phase. Waiting for other ranks
// counts.
#include <array>

#include "comm/communicator.h"

namespace zero {

class TimedCommunicator final : public Communicator {
 public:
  explicit TimedCommunicator(Communicator& inner) : Communicator(inner.rank(), inner.size()), inner_(inner) {}

  double seconds(Phase phase) const { return seconds_[static_cast<std::size_t>(phase)]; }
  void reset() { seconds_ = {}; }

  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override { return inner_.allocate(numel, type); }

 private:
  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override;
  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override;
  void do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) override;
  void do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) override;
  void do_send(const at::Tensor& tensor, int to, const CallRecord& call) override;
  void do_recv(const at::Tensor& tensor, int from, const CallRecord& call) override;
  void do_barrier(const CallRecord& call) override;
  /// The part is not timed.
  std::unique_ptr<Communicator> do_split(int color, int key, const CallRecord& call) override;

  template <class Call>
  void time(Phase phase, const Call& call);

  Communicator& inner_;
  std::array<double, 16> seconds_{};
};

}  // namespace zero
