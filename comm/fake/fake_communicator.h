#pragma once
// One rank of a pretended world of N. Every collective returns at once, with the right shapes and made-up values. It
// measures the memory of a large job on one machine.
#include "comm/communicator.h"

namespace zero {

/// Rank `rank` of `size` pretended ranks. all_gather repeats its own shard. reduce_scatter returns its own slice (added
/// when accumulating). all_to_all returns what the rank sends itself, and zeros from others. all_reduce, broadcast,
/// send and recv leave their tensor unchanged. split returns pretended ranks too.
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
