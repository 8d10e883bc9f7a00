#pragma once
// TargetMachine: a machine described by the user, for estimates that are made on another machine.
#include <c10/core/Device.h>

#include <string>

#include "zero/estimate/memory_estimate.h"

namespace zero {

struct TargetMachine {
  int ranks = 0;  // of the run; 0: as many as this job has. Alone, it means ranks on this machine
  int ranks_per_node = 1;
  std::string memory;  // required: of one GPU if the device is "cuda", else each rank's share of the host
  std::string device;  // cpu | cuda; empty: training.device, or the CPU if that is "auto"

  /// Returns true if the user described a machine.
  bool named() const { return ranks_per_node > 1 || !memory.empty() || !device.empty(); }
  /// Returns the number of ranks to estimate for on this machine, if `local` ranks of this job run on it.
  int ranks_here(int local) const { return ranks > 0 ? ranks : local; }
};

c10::Device device_of(const TargetMachine& target, const Config& config);

/// Returns the budget of a rank on the machine. Reserves 1 GiB of a GPU for CUDA's context and NCCL. Throws InputError
/// if `memory` is missing, is not a number with a byte unit, or exceeds 1024 TiB. Also throws if `memory` is not more
/// than a rank's process holds now or, on a GPU, not more than the reserve.
NodeBudget budget_of(const TargetMachine& target, c10::Device device);

}  // namespace zero
