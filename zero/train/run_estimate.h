#pragma once
// RunEstimate: estimates what a run takes of its machine. It is printed or refused before anything is allocated.
#include <optional>

#include "comm/world/job.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/estimate/memory_estimate.h"
#include "zero/estimate/target_machine.h"
#include "zero/output/output_dir.h"

namespace zero {

/// The run, and the machine that it would run on. All of it outlives the calls.
struct EstimateRequest {
  const Config& config;
  const BatchArithmetic& batch;
  const Model& model;
  c10::Device device;
  FormerRun former;
  const TargetMachine& target;
};

/// For --dry-run: rank 0 prints the table, every stage, the batch, the optimizers, and with `with_configuration` every
/// key. Throws InputError on all ranks if the run does not fit. Collective.
void print_estimate(Job& job, const EstimateRequest& request, bool with_configuration);

/// Throws InputError on all ranks if memory or disk are too small for the run; rank 0 prints the table of the memory
/// before it. All ranks agree whether checkpoints are copied, and what is kept for backward. Collective.
MemoryEstimate require_memory(Job& job, const EstimateRequest& request);

/// Throws InputError if rank 0's disk is too small for what the run writes. `steps`: none if unknown.
void require_disk(const Job& job, const EstimateRequest& request, const MemoryPlan& memory,
                  std::optional<std::int64_t> steps);

}  // namespace zero
