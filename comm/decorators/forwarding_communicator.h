#pragma once
// ForwardingCommunicator: the base class of decorators. It forwards every call to another communicator of the same
// ranks. A decorator overrides the methods that it changes.
#include "comm/communicator.h"

namespace zero {

class ForwardingCommunicator : public Communicator {
 public:
  CollectiveMemory& memory() override { return inner_.memory(); }
  void poll() override { inner_.poll(); }
  FailureHandling& failures() override { return inner_.failures(); }

 protected:
  /// `inner` must outlive this object. The inner communicator numbers its records independently.
  explicit ForwardingCommunicator(Communicator& inner) : Communicator(inner.rank(), inner.size()), inner_(inner) {}

  Communicator& inner() { return inner_; }

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
  /// Splits the inner communicator. The result is not decorated.
  std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord& call) override;

 private:
  Communicator& inner_;
};

}  // namespace zero
