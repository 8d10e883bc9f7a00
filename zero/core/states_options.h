#pragma once
// StatesOptions: where model states lie, in which types, and how they travel. Who makes ModelStates gives them once;
// all that is below reads them here.
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

/// Where states live that are not in memory; an empty factory means memory.
struct OffloadPolicy {
  StateStoreFactory optimizer;
  std::function<std::unique_ptr<ShardStore>(const std::vector<std::int64_t>& bytes)> weights;  // of stage 3's shards
  bool through_host = false;  // what is held elsewhere passes through buffers of the host, as it always does on a GPU
};

struct StatesOptions {
  ShardPlan plan;
  Precision precision;
  OptimizerOptions optimizer;
  StateStorage storage;      // a split master is of weights in bf16 and masters in fp32
  bool keep_frozen = false;  // frozen weights stay whole at stage 3
  FrozenFormat frozen;       // of blocks
  OffloadPolicy offload;
  at::Device device = at::kCPU;  // of weights, states and batches; the mesh's ranks must take its tensors
  bool overlap = false;  // gathers run ahead by one unit and sums beside the computation, each on a communicator of
                         // its own, for a second gather buffer and a second reduce buffer. Changes no result.
  UnitOrder order = UnitOrder::chain;
  int open_groups = 2;   // units in any order: those whose weights are there at once, at most
  bool watched = false;  // somebody will watch the parameters (zero/core/buffers/flat_storage.h)
  /// Sums of gradients and their norm are the same to the last bit for all ranks that are a power of two, at every stage:
  /// each micro-batch counts for itself, in the order of (micro-batch, rank). Optimizers are elementwise then, gradients
  /// at rest in the type of sums.
  bool sums_in_order = false;
  std::int64_t micro_batches = 1;  // of each rank in a step, where sums are in order
  /// Matrix products accumulate the gradients of an engine's weights where groups hold them whole (stages 0 and 1), instead
  /// of handing a tensor of the compute type to autograd. Gradients at rest in a wider type are thereby rounded less
  /// often than at other stages, to other bits. Not where sums are in order.
  bool fuse_accumulation = false;
  int first_unit = 0;        // its number in the tags of calls; the others follow
  bool save_frozen = false;  // checkpoints hold frozen weights too, where these are plain numbers

  /// True if what is held elsewhere is in other memory than the device's: it is copied there and back.
  bool passes_host() const { return offload.through_host || device.is_cuda(); }
};

}  // namespace zero
