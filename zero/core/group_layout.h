#pragma once
// GroupLayout: the flat vector of one group, its parts on the ranks, and the format of its weights. The layouts of all
// groups determine what an engine will allocate.
#include <memory>

#include "zero/core/buffers/flat_layout.h"
#include "zero/core/buffers/frozen_format.h"
#include "zero/core/buffers/wire_format.h"
#include "zero/core/group_plan.h"
#include "zero/core/precision.h"
#include "zero/core/shard_plan.h"

namespace zero {

struct GroupLayout {
  GroupSpec spec;
  FlatLayout flat;
  std::shared_ptr<const WireFormat> format;  // of the weights
  Precision precision;
  Placement weights = Placement::resident, gradient = Placement::resident, states = Placement::resident;
  int rungs = 0;          // shard-length vectors for summing gradients in order, in addition to the gradient at rest
  bool in_turns = false;  // sums in order over a number of ranks that is not a power of two: parts are added one by one

  bool comes_and_goes() const { return weights == Placement::sharded || !format->is_plain(); }
  /// Returns the elements whose states the rank at this index holds.
  FlatRange own(int place) const;
  /// Bytes of the full vector of weights, and of the codes that are gathered and decoded into it; 0: none.
  std::int64_t full_bytes() const { return flat.numel() * std::int64_t(c10::elementSize(precision.compute)); }
  std::int64_t wire_bytes() const;
  /// Sizes of a trained group's gradient: its elements at rest, and the bytes of the vector that is summed over ranks.
  std::int64_t gradient_numel() const;
  std::int64_t rest_gradient_bytes() const {
    return gradient_numel() * std::int64_t(c10::elementSize(precision.gradient));
  }
  std::int64_t rung_bytes() const { return flat.shard_numel() * std::int64_t(c10::elementSize(precision.gradient)); }
  std::int64_t summed_bytes() const;
};

struct LayoutOptions {
  ShardPlan plan;
  Precision precision;
  int shards = 1;               // into which whole parameters are divided
  int shards_of_cut = 1;        // the same for slices
  bool stores_weights = false;  // outside of memory
  bool keep_frozen = false;
  FrozenFormat frozen = {};
  std::int64_t grain = 1;            // elements of a trained tensor that must stay together
  std::int64_t summed_in_order = 0;  // micro-batches of a step; 0: not in order
  at::Device device = at::kCPU;      // where weights are decoded
  UnitOrder order = UnitOrder::chain;
  std::vector<UnitRun> runs = {};  // as in StatesOptions
};

/// Returns the layouts of all groups, in their order.
std::vector<GroupLayout> lay_out(const Units& units, const LayoutOptions& options);

/// Bytes of each buffer for full vectors. Gather buffers exist if weights are gathered on use, reduce buffers if
/// gradients are sharded.
struct BufferSizes {
  std::vector<std::int64_t> gather, reduce;
};

/// Returns the buffers of a chain. One unit is open at a time, with the groups that it borrows from and those that span
/// the model. With `overlap`, the next unit's weights and the previous unit's gradients are in flight too.
BufferSizes buffer_sizes(const Units& units, const std::vector<GroupLayout>& groups, bool overlap);
/// Returns the buffers for units in any order. Up to `open` units may be open with all their groups. With `overlap`,
/// one more group is in flight.
BufferSizes buffer_sizes_of_any(const std::vector<GroupLayout>& groups, int open, bool overlap);

}  // namespace zero
