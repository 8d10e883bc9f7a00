#pragma once
// MpiGroup: the common base of this backend's communicators. It implements send, recv and split. Every wait for other
// ranks ends at the deadline, with an Error that names the call and the missing ranks.
#include <cstddef>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/mpi/mpi_failure_reports.h"
#include "comm/mpi/point_to_point.h"

namespace zero {

class MpiGroup : public Communicator {
 public:
  CollectiveMemory& memory() final { return memory_; }
  void poll() final;
  FailureHandling& failures() final { return failures_; }

 protected:
  MpiGroup(std::shared_ptr<PointToPoint> messages, const MpiOptions& options);

  PointToPoint& messages() const { return *messages_; }
  /// The data pointer of a CPU tensor.
  static std::byte* bytes_of(const at::Tensor& tensor);

 private:
  void do_send(const at::Tensor& tensor, int to, const CallRecord& call) final;
  void do_recv(const at::Tensor& tensor, int from, const CallRecord& call) final;
  void do_settle(const CallRecord& call) final;
  std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord& call) final;

  std::shared_ptr<PointToPoint> messages_;
  MpiOptions options_;
  std::vector<at::Tensor> sent_;  // still in flight
  TorchMemory memory_;
  MpiFailures failures_;
};

/// Makes the communicator of a group. It uses shared memory if the options allow it and all ranks are on one node, and
/// messages otherwise. Collective.
std::unique_ptr<Communicator> make_mpi_group(std::shared_ptr<PointToPoint> messages, const MpiOptions& options);

}  // namespace zero
