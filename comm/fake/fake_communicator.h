#pragma once
// One rank of a fake job of N ranks. Every collective returns at once, with the right shapes and made-up values. It is
// used to measure a large job's memory on one machine.
#include "comm/communicator.h"

namespace zero {

/// Rank `rank` of `size` fake ranks. all_gather repeats this rank's shard. reduce_scatter returns this rank's slice, or
/// adds it if `accumulate` is set. all_to_all returns this rank's elements to itself, and zeros from all others.
/// all_reduce, broadcast, send and recv leave their tensor unchanged. split returns a FakeCommunicator.
class FakeCommunicator final : public Communicator {
 public:
  FakeCommunicator(int rank, int size) : Communicator(rank, size) {}

  CollectiveMemory& memory() override { return memory_; }
  void poll() override {}
  FailureHandling& failures() override { return failures_; }

 private:
  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override;
  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override;
  void do_all_reduce(const at::Tensor&, ReduceOptions, const CallRecord&) override {}
  void do_broadcast(const at::Tensor&, int, const CallRecord&) override {}
  void do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                     const std::vector<std::int64_t>& in_counts, const CallRecord& call) override;
  void do_send(const at::Tensor&, int, const CallRecord&) override {}
  void do_recv(const at::Tensor&, int, const CallRecord&) override {}
  void do_settle(const CallRecord&) override {}
  void do_barrier(const CallRecord&) override {}
  std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord& call) override;

  TorchMemory memory_;
  SynchronousFailures failures_;
};

}  // namespace zero
