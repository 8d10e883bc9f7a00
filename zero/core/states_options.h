#pragma once
// StatesOptions: the place and types of model states, and how they travel. A caller makes ModelStates with them, and
// all code below reads them here.
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

/// Factories for states and weights outside of memory. An empty factory means memory.
struct OffloadPolicy {
  StateStoreFactory optimizer;
  std::function<std::unique_ptr<ShardStore>(const std::vector<std::int64_t>& bytes)> weights;  // stage 3's shards
  bool through_host = false;  // offloaded values pass through host buffers, as they always do on a GPU
};

struct StatesOptions {
  ShardPlan plan;
  Precision precision;
  OptimizerOptions optimizer;
  StateStorage storage;      // a split master needs bf16 weights and fp32 masters
  bool keep_frozen = false;  // frozen weights stay whole at stage 3
  FrozenFormat frozen;       // of frozen blocks
  OffloadPolicy offload;
  at::Device device = at::kCPU;  // of weights, states and batches; the mesh's communicators must take its tensors
  /// Gathers run ahead by one unit, and sums run in parallel with the computation, each on a communicator of its own.
  /// That takes a second gather buffer and a second reduce buffer. It changes no result.
  bool overlap = false;
  UnitOrder order = UnitOrder::chain;
  int open_groups = 2;   // UnitOrder::any: most units whose weights are unsharded at once
  bool watched = false;  // somebody will watch the parameters (zero/core/buffers/flat_storage.h)
  /// Sums of gradients and their norm have the same bits for every number of ranks, at every stage. Each
  /// micro-batch counts for itself, in the order of (micro-batch, rank). Optimizers are then elementwise, and gradients
  /// at rest have the type of sums.
  bool sums_in_order = false;
  std::int64_t micro_batches = 1;  // of each rank in a step; read if sums are in order
  /// Matrix products add to the gradients of an engine's weights themselves if groups hold those whole (stages 0 and
  /// 1). Autograd then gets no tensor of the compute type. Gradients at rest in a wider type are rounded less often
  /// than at other stages, so their bits differ. Not combinable with sums_in_order.
  bool fuse_accumulation = false;
  int first_unit = 0;         // number of the first unit in the tags of calls; the others follow
  bool save_frozen = false;   // checkpoints hold frozen weights too, if these are plain numbers
  std::vector<UnitRun> runs;  // all units in order; each stage of the pipeline axis holds its own. Empty: one run

  /// True if offloaded values lie in other memory than the device's, so that they are copied to it and back.
  bool passes_host() const { return offload.through_host || device.is_cuda(); }
};

}  // namespace zero
