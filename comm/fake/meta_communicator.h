#pragma once
// MetaCommunicator: one rank of a job whose other ranks do not exist. It takes tensors on LibTorch's meta device, which
// have sizes but no memory. It transfers nothing. Estimates use it to find how much memory a rank would hold.
#include <cstdint>

#include "comm/communicator.h"

namespace zero {

class MetaCommunicator final : public Communicator, private CollectiveMemory {
 public:
  /// `largest_sum` receives the maximum, in bytes, of the sums that reserve() calls announce. It may be null.
  explicit MetaCommunicator(int ranks, std::int64_t* largest_sum = nullptr, int rank = 0)
      : Communicator(rank, ranks), largest_sum_(largest_sum) {}

  CollectiveMemory& memory() override { return *this; }
  void poll() override {}
  FailureHandling& failures() override { return failures_; }

 private:
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override;
  std::int64_t own_device_bytes() const override { return 0; }
  void reserve(const std::vector<std::int64_t>&, std::int64_t largest_sum) override;
  void do_all_gather(const at::Tensor&, const at::Tensor&, const CallRecord&) override {}
  void do_reduce_scatter(const at::Tensor&, const at::Tensor&, ReduceOptions, const CallRecord&) override {}
  void do_all_reduce(const at::Tensor&, ReduceOptions, const CallRecord&) override {}
  void do_broadcast(const at::Tensor&, int, const CallRecord&) override {}
  void do_all_to_all(const at::Tensor&, const std::vector<std::int64_t>&, const at::Tensor&,
                     const std::vector<std::int64_t>&, const CallRecord&) override {}
  void do_send(const at::Tensor&, int, const CallRecord&) override {}
  void do_recv(const at::Tensor&, int, const CallRecord&) override {}
  void do_settle(const CallRecord&) override {}
  void do_barrier(const CallRecord&) override {}
  std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord&) override {
    return std::make_unique<MetaCommunicator>(int(ranks.size()), largest_sum_, place_in(ranks).key);
  }

  SynchronousFailures failures_;
  std::int64_t* largest_sum_;
};

}  // namespace zero
