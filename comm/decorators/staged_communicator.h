#pragma once
// StagedCommunicator: runs collectives of device tensors through host memory and a CPU backend. It serves ranks that
// share a GPU if NCCL does not allow that. It is correct but slow: every call waits for the device.
#include "comm/decorators/forwarding_communicator.h"

namespace zero {

class StagedCommunicator final : public ForwardingCommunicator {
 public:
  /// Takes ownership of a communicator of CPU tensors. Tensors of `device` are staged through pinned memory.
  StagedCommunicator(std::unique_ptr<Communicator> host, at::Device device);

  CollectiveMemory& memory() override { return memory_; }

 private:
  at::Tensor stage(const at::Tensor& tensor, bool with_contents) const;
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
  std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord& call) override;

  std::unique_ptr<Communicator> host_;
  at::Device device_;
  std::vector<at::Tensor> sent_;  // host tensors since the last settle()
  TorchMemory memory_;
};

}  // namespace zero
