#pragma once
// TargetMachine: a machine that is described rather than looked at, for an estimate given elsewhere.
#include <c10/core/Device.h>

#include <string>

#include "zero/estimate/memory_estimate.h"

namespace zero {

struct TargetMachine {
  int ranks = 0;  // of the run; 0: as many as are here
  int ranks_per_node = 1;
  std::string memory;  // "80GiB": of one GPU with device "cuda", else of host memory for one rank; required
  std::string device;  // cpu | cuda; empty: training.device, the CPU where that is "auto"

  /// Whether the user described one.
  bool named() const { return ranks > 0 || ranks_per_node > 1 || !memory.empty() || !device.empty(); }
};

c10::Device device_of(const TargetMachine& target, const Config& config);

/// What a rank of the machine may take. Of a GPU's memory 1 GiB is left to CUDA's context and NCCL. InputError for a
/// `memory` that is missing, is no number with a unit of bytes, more than 1024 TiB, or no more than what a rank's
/// process holds now (on a GPU: than that 1 GiB).
NodeBudget budget_of(const TargetMachine& target, c10::Device device);

}  // namespace zero
