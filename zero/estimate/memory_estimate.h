#pragma once
// MemoryEstimate: whether a run will fit, said before anything is allocated, and what would fit if it does not.
#include <cstdint>
#include <optional>
#include <string>

#include "offload/memory/node_memory.h"
#include "zero/estimate/memory_plan.h"
#include "zero/output/output_dir.h"

namespace zero {

/// What a node offers, and who shares it.
struct NodeBudget {
  int ranks_here = 1;
  NodeMemory memory;
  std::int64_t disk_free = -1;              // under offload.nvme_dir; -1: unknown or not wanted
  std::int64_t process = 0;                 // Pss of a rank now: what is loaded before anything is allocated
  std::optional<std::int64_t> device_free;  // on a GPU: what is left beside its context
  std::int64_t output_room = -1;            // what the run may write where job.output_dir is (disk_room.h); -1: unknown
  bool assumed = false;                     // of a machine that was described: nothing of it was looked at
};

/// Of the node that this process runs on, now. `former`: what becomes of a run in the output directory; `device` is the
/// rank's.
NodeBudget node_budget(const Config& config, FormerRun former, int ranks_here, at::Device device);

/// Pss of a rank's process beside what its tracker counts, at the peak: what it held before, libraries that come to
/// life, and the pool's slack.
std::int64_t process_peak(std::int64_t process_now, std::int64_t tracked_peak);

struct MemoryEstimate {
  MemoryPlan plan;
  std::int64_t process = 0;  // bytes of a rank's process beside the tracker: libraries, thread stacks, the pool's slack
  std::int64_t rank_peak = 0;       // host bytes of a rank, its process included
  std::int64_t node_peak = 0;       // of all ranks of the node
  std::int64_t node_offer = 0;      // what they may take
  bool copies_checkpoints = false;  // asked for, and there is room for it: a run that has none waits for them instead
  bool keeps_inputs = false;        // what norms and activations give: asked for, or there is room for it
  bool fits = false;
  // where it does not fit: the nearest configuration that does, as arguments; empty: there is none
  std::string nearest;
  std::string table;   // for people: the answer, then one rank at rest and at the peak
  std::string stages;  // for people: one rank at its peak at every stage, and what checkpoints take
};

/// The plan of one stage on a node, and whether the node has room for it.
MemoryEstimate estimate_stage(const Config& config, const BatchArithmetic& batch, MemoryPlanner& planner,
                              const NodeBudget& budget, int stage);

/// `model` as it will be trained; its parameters have no tensors afterwards. A pure function of its arguments,
/// but for the threads of this process, each of which has a workspace.
MemoryEstimate estimate_memory(const Config& config, const BatchArithmetic& batch, const Model& model,
                               const NodeBudget& budget);

/// Throws InputError with what is needed, what is there and what fits, where the estimate says no.
void require_fit(const Config& config, const MemoryEstimate& estimate, const NodeBudget& budget);

}  // namespace zero
