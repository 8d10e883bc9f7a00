#pragma once
// RunEstimate: estimates the memory and disk space that a run needs. The estimate is printed or checked before anything
// is allocated.
#include <optional>

#include "comm/world/job.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/estimate/memory_estimate.h"
#include "zero/estimate/target_machine.h"
#include "zero/output/output_dir.h"

namespace zero {

/// The run, and the machine on which it would run. All members must outlive the calls.
struct EstimateRequest {
  const Config& config;
  const BatchArithmetic& batch;
  const Model& model;
  c10::Device device;
  FormerRun former;
  const TargetMachine& target;
};

/// For --dry-run: rank 0 prints the memory table, every stage, the batch, the optimizers, and if `with_configuration`
/// is set every key. Throws InputError on all ranks if the run does not fit into memory. Collective.
MemoryEstimate print_estimate(Job& job, const EstimateRequest& request, bool with_configuration);

/// Throws InputError on all ranks if memory or disk are too small for the run; rank 0 first prints the memory table.
/// All ranks agree on whether checkpoints are copied, and on what is kept for backward. Collective.
MemoryEstimate require_memory(Job& job, const EstimateRequest& request);

/// Throws InputError if rank 0's disk is too small for the run's output. `steps`: none if unknown.
void require_disk(const Job& job, const EstimateRequest& request, const MemoryPlan& memory,
                  std::optional<std::int64_t> steps);

}  // namespace zero
