#pragma once
// StatesOptions: where model states are kept, their types, and how they are communicated. The options are passed to
// ModelStates and read by all code below it.
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "offload/shard_store.h"
#include "offload/state_store.h"
#include "zero/core/buffers/frozen_format.h"
#include "zero/core/group_plan.h"
#include "zero/core/precision.h"
#include "zero/core/shard_plan.h"
#include "zero/optim/optimizer_options.h"
#include "zero/optim/state_storage.h"

namespace zero {

/// Factories for stores that hold states and weights outside of memory. If a factory is empty, memory holds them.
struct OffloadPolicy {
  StateStoreFactory optimizer;
  std::function<std::unique_ptr<ShardStore>(const std::vector<std::int64_t>& bytes)> weights;  // for stage 3's shards
  bool through_host = false;  // offloaded values pass through host buffers, as they do on any GPU
};

struct StatesOptions {
  ShardPlan plan;
  Precision precision;
  OptimizerOptions optimizer;
  StateStorage storage;      // a split master needs bf16 weights and fp32 masters
  bool keep_frozen = false;  // frozen weights are not sharded at stage 3
  FrozenFormat frozen;       // of frozen blocks
  OffloadPolicy offload;
  at::Device device = at::kCPU;  // of weights, states and batches; the mesh's communicators must accept its tensors
  /// Gathers run ahead by one unit, and sums run in parallel with the computation, each on a communicator of its own.
  /// This needs a second gather buffer and a second reduce buffer. Results do not change.
  bool overlap = false;
  UnitOrder order = UnitOrder::chain;
  int open_groups = 2;   // UnitOrder::any: maximum number of units whose weights are unsharded at once
  bool watched = false;  // the parameters' storage will be watched (zero/core/buffers/flat_storage.h)
  /// Sums of gradients and their norm are the same bit for bit for every number of ranks, at every stage. Micro-batches
  /// are summed one by one, in the order of (micro-batch, rank). Optimizers must be elementwise, and gradients at rest
  /// must have the type of sums.
  bool sums_in_order = false;
  std::int64_t micro_batches = 1;  // of each rank in a step
  /// Matrix products write an engine's gradients where they are summed, if that place has the weights' type and holds
  /// no other micro-batch. Autograd then makes no tensor for them. Results change only for a weight that several
  /// products use.
  bool write_gradients = true;
  /// Where groups hold full gradients (stages 0 and 1), matrix products also add to earlier micro-batches, and to
  /// gradients of a wider type. Those are rounded less often than at other stages, so their bits differ. It cannot be
  /// combined with sums_in_order.
  bool fuse_accumulation = false;
  int first_unit = 0;         // number of the first unit in call tags; the other units follow
  bool save_frozen = false;   // checkpoints hold frozen weights too, if these are plain numbers
  std::vector<UnitRun> runs;  // consecutive units; a stage of the pipeline holds only its own. Empty: one UnitRun

  /// Returns true if offloaded values are not in the device's memory, so that they are copied to the device and back.
  bool passes_host() const { return offload.through_host || device.is_cuda(); }
};

}  // namespace zero
