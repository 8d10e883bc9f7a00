#pragma once
// UnitGroups: the units of a model, the groups that they use, and the streams on which weights and gradients travel.
#include <memory>
#include <vector>

#include "comm/stream.h"
#include "zero/core/kept_inputs.h"
#include "zero/core/parameter_group.h"

namespace zero {

/// An object that has unsharded weights, and reshards them before they change.
class WeightUser {
 public:
  virtual ~WeightUser() = default;
  /// Reshards its weights permanently: its backward will not run.
  virtual void end() noexcept = 0;
  /// Reshards its weights because others need the buffers. It may unshard them again.
  virtual void pause() = 0;
};

struct UnitGroups {
  Units units;
  std::vector<std::unique_ptr<ParameterGroup>> groups = {};
  std::vector<std::vector<ParameterGroup*>> needed_by = {};  // by unit: its own groups, and those that it borrows from
  std::vector<std::vector<ParameterGroup*>> spanning = {};   // by run: groups of all its units
  SideStream gather_stream = {}, reduce_stream = {};
  bool overlap = false;                   // gathers run ahead by one unit
  bool gathers = false;                   // some weights are gathered on use
  Communicator* context_ranks = nullptr;  // ranks with the other tokens of the same rows; null: there are none
  Communicator* tensor_ranks = nullptr;   // ranks with the other slices of divided parameters; null: there are none
  std::unique_ptr<InputHome> input_home = {};  // null: inputs of recomputed units stay on the device
  std::vector<WeightUser*> under_way = {};
  std::vector<bool> in_step = {};  // by run: true if a micro-batch of the current step has run its backward

  ~UnitGroups() { end_passes(); }
  /// The trained groups that this rank holds.
  std::vector<ParameterGroup*> trained() const;
  /// Call it before weights change. Passes in progress then reshard their weights, and will not run their backward.
  void end_passes();
};

}  // namespace zero
