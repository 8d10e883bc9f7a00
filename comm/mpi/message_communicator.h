#pragma once
// MessageCommunicator: collectives by messages, for groups that span nodes or have no shared memory. For a sum, each
// rank receives the pieces of its slice and adds them along the tree, in chunks of bounded size. Results are bit for
// bit those of every other backend.
#include <vector>

#include "comm/mpi/mpi_group.h"
#include "comm/mpi/reduction.h"

namespace zero {

class MessageCommunicator final : public MpiGroup {
 public:
  MessageCommunicator(std::shared_ptr<PointToPoint> messages, const MpiOptions& options)
      : MpiGroup(std::move(messages), options) {}

 private:
  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override;
  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override;
  void do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) override;
  void do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) override;
  void do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                     const std::vector<std::int64_t>& in_counts, const CallRecord& call) override;
  void do_barrier(const CallRecord& call) override;

  void all_reduce_small(std::byte* data, std::int64_t numel, const ReduceTypes& types);
  /// The lane's buffer for the piece that rank r sends. Pieces are `bytes` apart.
  std::byte* inbox(int lane, int r, std::size_t bytes);
  void sum(const std::byte* own, int lane, std::size_t stride, std::byte* out, std::int64_t numel,
           const ReduceTypes& types);

  std::vector<std::byte> inboxes_[2];  // about chunk_bytes each, whatever the size of the data
};

}  // namespace zero
