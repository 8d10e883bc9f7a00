#pragma once
// BatchArithmetic: divides the sequences of a step over ranks and micro-batches.
#include <cstdint>

#include "comm/mesh/mesh_shape.h"
#include "zero/config/config.h"

namespace zero {

/// The mesh of a run's ranks: sharding groups, each with one copy of the states, their replicas, and the ranks that
/// share tensors, tokens and units. InputError if those of [parallel] or zero.shard_degree do not divide the ranks.
MeshShape mesh_of(const Config& config, int ranks);

struct BatchArithmetic {
  MeshShape mesh;
  int ranks = 1;                       // that read different rows
  std::int64_t local_batch_size = 1;   // sequences in a rank's micro-batch; job.reproducible_rows if that is set
  std::int64_t global_batch_size = 1;  // sequences in a step, over all ranks
  std::int64_t accumulation = 1;       // micro-batches per rank and step

  /// For a job of `ranks`. Throws InputError as mesh_of(), and if the global batch is no multiple of local batch x
  /// ranks. Also throws for micro-batches or a stage that a pipeline does not take, and if sums over `ranks` cannot
  /// equal those over other numbers of ranks. The message names numbers that work.
  static BatchArithmetic of(const Config& config, int ranks);

  /// For example "global batch 32 = 2 ranks x 4 micro-batches x 4 sequences".
  std::string describe() const;
};

}  // namespace zero
