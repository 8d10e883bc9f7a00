#pragma once
// SelfCommunicator: a group of one rank, like MPI_COMM_SELF. It transfers nothing.
#include "comm/communicator.h"

namespace zero {

class SelfCommunicator final : public Communicator {
 public:
  /// For a job of one rank, with host memory.
  SelfCommunicator() : Communicator(0, 1) {}
  /// A group of this rank alone, taken from `others`, which must outlive this object. Memory comes from the device of
  /// `others`, and failures() returns the object of `others`.
  explicit SelfCommunicator(Communicator& others);

  CollectiveMemory& memory() override { return memory_; }
  void poll() override {}
  FailureHandling& failures() override { return *failures_; }

 private:
  /// Ignores reserve(), since nothing is transferred.
  class Memory final : public CollectiveMemory {
   public:
    at::Tensor allocate(std::int64_t numel, at::ScalarType type) override { return home->allocate(numel, type); }
    void reserve(const std::vector<std::int64_t>&, std::int64_t) override {}
    std::int64_t own_device_bytes() const override { return 0; }

    TorchMemory own;
    CollectiveMemory* home = &own;
  };

  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override;
  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override;
  void do_all_reduce(const at::Tensor&, ReduceOptions, const CallRecord&) override {}
  void do_broadcast(const at::Tensor&, int, const CallRecord&) override {}
  void do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                     const std::vector<std::int64_t>& in_counts, const CallRecord& call) override;
  void do_send(const at::Tensor&, int, const CallRecord&) override {}  // the caller has checked that a peer exists
  void do_recv(const at::Tensor&, int, const CallRecord&) override {}
  void do_settle(const CallRecord&) override {}
  void do_barrier(const CallRecord&) override {}
  std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord& call) override;

  Memory memory_;
  SynchronousFailures own_failures_;
  FailureHandling* failures_ = &own_failures_;
};

}  // namespace zero
