#pragma once
// GroupPlan: which parameters of a model travel together. A group has one trainability, and is gathered, reduced and
// updated as one flat vector.
#include <vector>

#include "models/parameter_unit.h"

namespace zero {

using Units = std::vector<ParameterUnit*>;

/// How units follow each other: one after the other, as a chain's do, or as somebody else's program wants it.
enum class UnitOrder : std::uint8_t { chain, any };

/// Consecutive units [begin, end) that a micro-batch passes on one rank of the pipeline axis (torchtitan: a stage, if a
/// rank has several, a model chunk).
struct UnitRun {
  int begin = 0, end = 0;
  int stage = 0;  // the place of that rank along the axis

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
  int unit = -1;     // the unit that it belongs to; -1: it spans the units of its run
  bool cut = false;  // its tensors are slices of the tensor axis, so fewer ranks share them than whole ones
  int run = 0;       // the run of its units
  int stage = 0;     // the place along the pipeline axis of the ranks that hold it

  bool spans_model() const { return unit < 0; }
};

/// A unit's frozen parameters are one group, and so are its trainable ones; slices are groups of their own. In a chain,
/// trainable parameters of partly frozen units (adapters) are tiny. Those of all units of a run make one group, so that
/// they are gathered once and reduced once a step. `runs`: all units in order; empty: one run.
std::vector<GroupSpec> plan_groups(const Units& units, UnitOrder order = UnitOrder::chain,
                                   const std::vector<UnitRun>& runs = {});

/// True if a group's weights are quantised where frozen ones are: those of blocks are, embedding and head are not.
bool quantizes(const GroupSpec& spec, int units);

/// The tensors of each member, in order: what a FlatLayout is made of.
std::vector<std::vector<TensorSpec>> specs_of(const Units& units, const GroupSpec& group);

}  // namespace zero
