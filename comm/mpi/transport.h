#pragma once
// How bytes get from rank to rank of one group, below the communicator of the MPI backend: by messages, or through
// shared memory. Every operation is collective, returns finished, and waits for other ranks no longer than its
// deadline: then it throws an Error that names the call and the missing ranks.
#include <cstddef>
#include <cstdint>

#include "comm/communicator.h"

namespace zero {

/// Types of a reduction; sums follow sum_tree().
struct ReduceTypes {
  at::ScalarType in = at::kFloat;
  at::ScalarType out = at::kFloat;
  at::ScalarType sum = at::kFloat;
  bool accumulate = false;
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// full [ranks * bytes] <- shards [bytes] by rank; the shard may lie at its place in full.
  virtual void all_gather(std::byte* full, const std::byte* shard, std::size_t bytes, const CallRecord& call) = 0;
  /// shard [numel] <- this rank's slice of the sum of full [ranks * numel].
  virtual void reduce_scatter(std::byte* shard, const std::byte* full, std::int64_t numel, const ReduceTypes& types,
                              const CallRecord& call) = 0;
  /// data [numel] <- the sum over ranks; types.in equals types.out.
  virtual void all_reduce(std::byte* data, std::int64_t numel, const ReduceTypes& types, const CallRecord& call) = 0;
  virtual void broadcast(std::byte* data, std::size_t bytes, int root, const CallRecord& call) = 0;
  virtual void barrier(const CallRecord& call) = 0;
};

/// The cut of `numel` elements into one piece per rank, all but the last ones equal: where piece `index` begins and
/// ends.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t numel() const { return end - begin; }
};
inline Piece piece_of(std::int64_t numel, int pieces, int index) {
  const std::int64_t each = ((numel + pieces - 1) / pieces + 15) / 16 * 16;
  const auto bound = [&](std::int64_t i) { return i * each < numel ? i * each : numel; };
  return {bound(index), bound(index + 1)};
}

}  // namespace zero
