#pragma once
// TargetMachine: a machine given by its description, for an estimate made on another one.
#include <c10/core/Device.h>

#include <string>

#include "zero/estimate/memory_estimate.h"

namespace zero {

struct TargetMachine {
  int ranks = 0;  // of the run; 0: as many as here
  int ranks_per_node = 1;
  std::string memory;  // "80GiB"; required. With device "cuda" of one GPU, otherwise of the host per rank
  std::string device;  // cpu | cuda; empty: training.device, or the CPU if that is "auto"

  /// True if the user described one.
  bool named() const { return ranks > 0 || ranks_per_node > 1 || !memory.empty() || !device.empty(); }
};

c10::Device device_of(const TargetMachine& target, const Config& config);

/// The budget of a rank on the machine. Reserves 1 GiB of a GPU for CUDA's context and NCCL. Throws InputError if
/// `memory` is missing, is no number with a byte unit, or exceeds 1024 TiB. Also throws if it is no more than a rank's
/// process holds now (on a GPU: than the reserve).
NodeBudget budget_of(const TargetMachine& target, c10::Device device);

}  // namespace zero
