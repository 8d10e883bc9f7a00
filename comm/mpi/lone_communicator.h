#pragma once
// LoneCommunicator: a group of one, in which nothing travels.
#include "comm/mpi/mpi_group.h"

namespace zero {

class LoneCommunicator final : public MpiGroup {
 public:
  LoneCommunicator(std::shared_ptr<Messages> messages, const MpiOptions& options)
      : MpiGroup(std::move(messages), options) {}

 private:
  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override;
  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override;
  void do_all_reduce(const at::Tensor&, ReduceOptions, const CallRecord&) override {}
  void do_broadcast(const at::Tensor&, int, const CallRecord&) override {}
  void do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                     const std::vector<std::int64_t>& in_counts, const CallRecord& call) override;
  void do_barrier(const CallRecord&) override {}
};

}  // namespace zero
