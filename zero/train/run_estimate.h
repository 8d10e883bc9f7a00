#pragma once
// RunEstimate: what a run will take of its machine, said or refused before anything is allocated.
#include <optional>

#include "comm/world/job.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/estimate/memory_estimate.h"
#include "zero/estimate/target_machine.h"
#include "zero/output/output_dir.h"

namespace zero {

/// What is estimated, and where it would run. All of it outlives the calls.
struct EstimateRequest {
  const Config& config;
  const BatchArithmetic& batch;
  const Model& model;
  c10::Device device;
  FormerRun former;
  const TargetMachine& target;
};

/// For --dry-run: rank 0 prints the table, every stage, the batch, the optimizers, and with `with_configuration` every
/// key. Throws InputError on all ranks where the run does not fit. Collective.
void print_estimate(Job& job, const EstimateRequest& request, bool with_configuration);

/// Throws InputError on all ranks where memory or disk are too small for the run; rank 0 then prints the table of the
/// memory first. Whether checkpoints are copied, and what is kept for backward, is the same on all ranks. Collective.
MemoryEstimate require_memory(Job& job, const EstimateRequest& request);

/// Throws InputError where rank 0's disk is too small for what the run writes. `steps` where they are known.
void require_disk(const Job& job, const EstimateRequest& request, const MemoryPlan& memory,
                  std::optional<std::int64_t> steps);

}  // namespace zero
