#pragma once
// GroupPlan: which parameters of a model travel together. A group is either trained or frozen, and is gathered, reduced
// and updated as one flat vector.
#include <vector>

#include "models/parameter_unit.h"

namespace zero {

using Units = std::vector<ParameterUnit*>;

/// The order in which units are used: one after the other as in a chain, or any order that the caller's program
/// chooses.
enum class UnitOrder : std::uint8_t { chain, any };

/// Consecutive units [begin, end) that a micro-batch passes through on one rank of the pipeline axis. torchtitan calls
/// it a stage, or a model chunk if a rank has several.
struct UnitRun {
  int begin = 0, end = 0;
  int stage = 0;  // index of that rank along the axis

  bool has(int unit) const { return unit >= begin && unit < end; }
  bool operator==(const UnitRun&) const = default;
};

/// One leaf of the units.
struct ParameterRef {
  int unit = 0;
  int parameter = 0;

  bool operator==(const ParameterRef&) const = default;
};

struct GroupSpec {
  std::vector<ParameterRef> members;
  bool trainable = true;
  int unit = -1;     // unit that the group belongs to; -1: the group spans the units of its run
  bool cut = false;  // its tensors are slices along the tensor axis; fewer ranks share a slice than a whole tensor
  int run = 0;       // the run of its units
  int stage = 0;     // index along the pipeline axis of the ranks that hold the group

  bool spans_model() const { return unit < 0; }
};

/// A unit's frozen parameters form one group, and its trainable parameters another. Slices form groups of their own. In
/// a chain, trainable parameters of partly frozen units (adapters) are tiny. Those of all units of a run therefore form
/// one group, which is gathered once and reduced once per step. `runs`: all units in order; empty: one run.
std::vector<GroupSpec> plan_groups(const Units& units, UnitOrder order = UnitOrder::chain,
                                   const std::vector<UnitRun>& runs = {});

/// Returns true if a group belongs to a block, so that its frozen weights may be quantized. Embedding and head are
/// never quantized.
bool quantizes(const GroupSpec& spec, int units);

/// Returns the tensors of each member, in order, for a FlatLayout.
std::vector<std::vector<TensorSpec>> specs_of(const Units& units, const GroupSpec& group);

}  // namespace zero
