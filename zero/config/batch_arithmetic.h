#pragma once
// BatchArithmetic: divides the sequences of a step over ranks and micro-batches.
#include <cstdint>

#include "comm/mesh/mesh_shape.h"
#include "zero/config/config.h"

namespace zero {

/// Returns the mesh of a run's ranks. It has sharding groups with one copy of the states each, replicas, and ranks that
/// share tensors, tokens and units. Throws InputError if a degree in [parallel] or zero.shard_degree does not divide
/// the ranks.
MeshShape mesh_of(const Config& config, int ranks);

struct BatchArithmetic {
  MeshShape mesh;
  int ranks = 1;                       // number of ranks that read different rows
  std::int64_t local_batch_size = 1;   // sequences in a rank's micro-batch; job.reproducible_rows if that is set
  std::int64_t global_batch_size = 1;  // sequences in a step, over all ranks
  std::int64_t accumulation = 1;       // micro-batches per rank and step

  /// Makes the division for a job of `ranks`. Throws InputError as mesh_of() does, and if the global batch is not a
  /// multiple of local batch x ranks. Also throws if a pipeline does not support the number of micro-batches or the
  /// ZeRO stage. It also throws if reproducible sums do not support this number of ranks. The message names the rule;
  /// judge_layout() (zero/estimate/legal_layout.h) finds values that obey it.
  static BatchArithmetic of(const Config& config, int ranks);

  /// For example "global batch 32 = 2 ranks x 4 micro-batches x 4 sequences".
  std::string describe() const;
};

}  // namespace zero
