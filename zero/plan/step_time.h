#pragma once
// StepTime: simulates one training step of a layout on a machine. It covers computation, collectives along each axis,
// the optimizer, disk and host, and the waiting time of a pipeline.
#include <string>
#include <vector>

#include "models/model.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/plan/plan_machine.h"
#include "zero/plan/unit_work.h"

namespace zero {

/// Seconds of one step on the busiest rank. The parts add up to the step: time that a transfer shares with computation
/// counts as computation.
struct StepTime {
  KernelSeconds compute;
  double gathers = 0, sums = 0;  // of weights; of gradients
  double axes = 0;               // tensor, context and pipeline: activations
  double optimizer = 0;          // memory or, for offloaded states, the host
  double disk = 0;
  double bubble = 0;                            // waiting for other stages of a pipeline
  double bytes_in_node = 0, bytes_between = 0;  // that a rank sends
  double bytes_disk = 0;                        // that a rank reads and writes

  double seconds() const { return compute.sum() + gathers + sums + axes + optimizer + disk + bubble; }
  /// The largest part in words: "products", "gathers of weights", ...
  std::string bound() const;
};

/// `model`: holds a rank's slices. `units`: the rank's work, from work_of_units().
StepTime simulate_step(const Model& model, const std::vector<UnitWork>& units, const Config& config,
                       const BatchArithmetic& batch, PlanMachine& machine);

}  // namespace zero
