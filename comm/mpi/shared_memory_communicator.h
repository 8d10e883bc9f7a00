#pragma once
// SharedMemoryCommunicator: collectives among the ranks of one node. Data passes in chunks through the slots of a
// shared window. The slots are small enough to stay in the caches. Ranks read the slots in place and sum along the
// tree. While one chunk is read, the next is written.
#include <cstdint>

#include "comm/mpi/mpi_group.h"
#include "comm/mpi/reduction.h"
#include "comm/mpi/shared_window.h"

namespace zero {

class SharedMemoryCommunicator final : public MpiGroup {
 public:
  /// `window` belongs to the group. Sends between two ranks do not use it.
  SharedMemoryCommunicator(std::shared_ptr<PointToPoint> messages, const MpiOptions& options, SharedWindow window)
      : MpiGroup(std::move(messages), options), window_(std::move(window)) {}

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
  /// The number of elements of a piece, chosen so that the pieces for all other ranks fit into one slot.
  std::int64_t piece_numel(std::size_t element) const;
  /// The index of `reader`'s piece in `writer`'s slot. The writer's own piece is never in its slot.
  static std::int64_t place(int writer, int reader) { return reader < writer ? reader : reader - 1; }
  void sum_pieces(const std::byte* own, std::int64_t piece, std::byte* out, std::int64_t numel,
                  const ReduceTypes& types);

  SharedWindow window_;
};

}  // namespace zero
