#pragma once
// ShardPlan: a ZeRO stage as data. At rest, parameters, gradients and optimizer state are each either complete on every
// rank, or divided into parts of 1/N. Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models".
#include <cstdint>
#include <string>

namespace zero {

enum class Placement : std::uint8_t { resident, sharded };

struct ShardPlan {
  Placement parameters = Placement::resident;
  Placement gradients = Placement::resident;
  Placement optimizer = Placement::resident;

  /// 0: nothing sharded (plain data parallelism); 1: optimizer state; 2: gradients too; 3: parameters too. Throws
  /// InputError for any other number.
  static ShardPlan for_stage(int stage);

  /// The stage's number. Throws InputError if the placements match no stage: sharded parameters require sharded
  /// gradients, and sharded gradients require a sharded optimizer.
  int stage() const;

  std::string describe() const;
};

}  // namespace zero
