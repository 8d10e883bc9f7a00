#pragma once
// GroupLayout: how one group lies: its flat vector, what of it is divided over ranks, and how its weights are written.
// What an engine will allocate follows from the layouts of its groups, before anything is.
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
  int rungs = 0;  // vectors of a shard's length in which gradients are summed in order, beside what is at rest

  bool comes_and_goes() const { return weights == Placement::sharded || !format->is_plain(); }
  /// What the rank at that place is in charge of.
  FlatRange own(int place) const;
  /// Bytes of the whole vector of weights, and of what is gathered to be decoded into it, if anything is.
  std::int64_t full_bytes() const { return flat.numel() * std::int64_t(c10::elementSize(precision.compute)); }
  std::int64_t wire_bytes() const;
  /// Of the gradient: elements at rest (of a trained group), and bytes of the vector that is summed over ranks.
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
  int shards = 1;              // that whole parameters are divided into
  int shards_of_cut = 1;       // the same of slices
  bool stores_weights = false;  // elsewhere than in memory
  bool keep_frozen = false;
  FrozenFormat frozen = {};
  std::int64_t grain = 1;            // elements of a trained tensor that may not be parted
  std::int64_t summed_in_order = 0;  // micro-batches of a step; 0: as is fastest
  at::Device device = at::kCPU;      // that decodes
  UnitOrder order = UnitOrder::chain;
};

/// Of all groups, in their order.
std::vector<GroupLayout> lay_out(const Units& units, const LayoutOptions& options);

/// Bytes of each buffer that whole vectors pass through: those for gathering exist where weights come and go, those for
/// reducing where gradients are divided.
struct BufferSizes {
  std::vector<std::int64_t> gather, reduce;
};

/// Of a chain at any moment one unit is open, and with `overlap` the next one on its way and the last one's gradients
/// beside the present ones; beside it the groups that it borrows from and those that span the model.
BufferSizes buffer_sizes(const Units& units, const std::vector<GroupLayout>& groups, bool overlap);
/// Of units in any order: any `open` of them may be, with all their groups, and one more group on its way with `overlap`.
BufferSizes buffer_sizes_of_any(const std::vector<GroupLayout>& groups, int open, bool overlap);

}  // namespace zero
