#pragma once
// ShardPlan: a ZeRO stage as data. At rest, parameters, gradients and optimizer state are each whole on every
// rank, or one part of 1/N on each. Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training
// Trillion Parameter Models".
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

  /// The stage's number. Throws InputError for placements that are no stage: sharded parameters need sharded gradients,
  /// and sharded gradients need a sharded optimizer.
  int stage() const;

  std::string describe() const;
};

}  // namespace zero
