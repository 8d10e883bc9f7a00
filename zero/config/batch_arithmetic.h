#pragma once
// BatchArithmetic: how the sequences of one step are divided over ranks and micro-batches.
#include <cstdint>

#include "comm/mesh/mesh_shape.h"
#include "zero/config/config.h"

namespace zero {

/// The grid of a run's ranks: groups that share one copy of the states, and replicas of it. Throws InputError when
/// zero.shard_degree does not divide the ranks.
MeshShape mesh_of(const Config& config, int ranks);

struct BatchArithmetic {
  MeshShape mesh;
  int ranks = 1;  // that read other rows than each other
  std::int64_t local_batch_size =
      1;  // sequences in one micro-batch of one rank; job.reproducible_rows where that counts
  std::int64_t global_batch_size = 1;  // sequences in a step of all ranks
  std::int64_t accumulation = 1;       // micro-batches of a rank in a step

  /// For a job of so many ranks. Throws InputError as mesh_of() does, and when the global batch is no multiple of local
  /// batch x ranks, or sums over so many ranks cannot be those of any other number; the message names numbers that work.
  static BatchArithmetic of(const Config& config, int ranks);

  /// "global batch 32 = 2 ranks x 4 micro-batches x 4 sequences".
  std::string describe() const;
};

}  // namespace zero
