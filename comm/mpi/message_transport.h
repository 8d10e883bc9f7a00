#pragma once
// Collectives by messages, for groups that span nodes or have no shared memory. Sums: each rank is sent the pieces of
// its slice and adds them along the tree, in chunks of bounded memory, so that the bits are those of every other
// backend.
#include <vector>

#include "comm/mpi/messages.h"
#include "comm/mpi/transport.h"

namespace zero {

class MessageTransport final : public Transport {
 public:
  /// `messages` must outlive this. Buffers hold about 2 x `chunk_bytes`, whatever the size of the data.
  explicit MessageTransport(Messages& messages, std::size_t chunk_bytes = std::size_t{4} << 20);

  void all_gather(std::byte* full, const std::byte* shard, std::size_t bytes, const CallRecord& call) override;
  void reduce_scatter(std::byte* shard, const std::byte* full, std::int64_t numel, const ReduceTypes& types,
                      const CallRecord& call) override;
  void all_reduce(std::byte* data, std::int64_t numel, const ReduceTypes& types, const CallRecord& call) override;
  void broadcast(std::byte* data, std::size_t bytes, int root, const CallRecord& call) override;
  void barrier(const CallRecord& call) override;

 private:
  void all_reduce_small(std::byte* data, std::int64_t numel, const ReduceTypes& types, const CallRecord& call);
  /// The buffer of a lane for the piece of rank r, pieces being `bytes` apart.
  std::byte* inbox(int lane, int r, std::size_t bytes);
  void sum(const std::byte* own, int lane, std::size_t stride, std::byte* out, std::int64_t numel,
           const ReduceTypes& types);

  Messages& messages_;
  int rank_;
  int size_;
  std::size_t chunk_bytes_;
  std::vector<std::byte> inboxes_[2];
};

}  // namespace zero
