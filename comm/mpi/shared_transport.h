#pragma once
// Collectives of the ranks of one node: data goes in chunks through the slots of a shared window, which stay in the
// caches, and is read, and summed along the tree, where it lies. While one chunk is read, the next is written.
#include <cstdint>

#include "comm/mpi/shared_window.h"
#include "comm/mpi/transport.h"

namespace zero {

class SharedTransport final : public Transport {
 public:
  explicit SharedTransport(SharedWindow window) : window_(std::move(window)) {}

  void all_gather(std::byte* full, const std::byte* shard, std::size_t bytes, const CallRecord& call) override;
  void reduce_scatter(std::byte* shard, const std::byte* full, std::int64_t numel, const ReduceTypes& types,
                      const CallRecord& call) override;
  void all_reduce(std::byte* data, std::int64_t numel, const ReduceTypes& types, const CallRecord& call) override;
  void broadcast(std::byte* data, std::size_t bytes, int root, const CallRecord& call) override;
  void barrier(const CallRecord& call) override;

 private:
  void all_reduce_small(std::byte* data, std::int64_t numel, const ReduceTypes& types);
  /// Elements of a piece, so that the pieces for all other ranks fit one slot.
  std::int64_t piece_numel(std::size_t element) const;
  /// The place of the piece for `reader` in the slot of `writer`: the writer's own piece never travels.
  static std::int64_t place(int writer, int reader) { return reader < writer ? reader : reader - 1; }
  void sum_pieces(const std::byte* own, std::int64_t piece, std::byte* out, std::int64_t numel,
                  const ReduceTypes& types);

  SharedWindow window_;
};

}  // namespace zero
