#pragma once
// MemoryEstimate: predicts, before anything is allocated, whether a run fits; if not, proposes one that does.
#include <cstdint>
#include <optional>
#include <string>

#include "offload/memory/node_memory.h"
#include "zero/estimate/memory_plan.h"
#include "zero/output/output_dir.h"

namespace zero {

/// The resources of a node, and the number of ranks that share them.
struct NodeBudget {
  int ranks_here = 1;
  NodeMemory memory;
  std::int64_t disk_free = -1;              // under offload.nvme_dir; -1: unknown or not needed
  std::int64_t process = 0;                 // current Pss of a rank: what is loaded before anything is allocated
  std::optional<std::int64_t> device_free;  // on a GPU: free memory, its context excluded
  std::int64_t output_room = -1;            // bytes that the run may write to job.output_dir (disk_room.h); -1: unknown
  bool assumed = false;                     // true for a described machine, which is not inspected
};

/// The budget of the node that this process runs on, now. `former`: treatment of an earlier run in the output
/// directory; `device`: the rank's.
NodeBudget node_budget(const Config& config, FormerRun former, int ranks_here, at::Device device);

/// Pss of a rank's process at the peak, without the bytes that its tracker counts. It has the initial Pss, libraries
/// loaded later, and the pool's slack.
std::int64_t process_peak(std::int64_t process_now, std::int64_t tracked_peak);

struct MemoryEstimate {
  MemoryPlan plan;
  std::int64_t process = 0;         // bytes that the tracker does not count: libraries, thread stacks, the pool's slack
  std::int64_t rank_peak = 0;       // host bytes of a rank, with its process
  std::int64_t node_peak = 0;       // over all ranks of the node
  std::int64_t node_offer = 0;      // available to them
  bool copies_checkpoints = false;  // configured, and there is room; otherwise the run waits for its checkpoints
  bool keeps_inputs = false;        // outputs of norms and activations: configured, or there is room
  bool fits = false;
  // if it does not fit: the nearest configuration that does, as arguments; empty: none
  std::string nearest;
  std::string table;   // text: the answer, then one rank at rest and at its peak
  std::string stages;  // text: one rank at its peak at every stage, and the size of checkpoints
};

/// The plan of one stage on a node, and whether it fits.
MemoryEstimate estimate_stage(const Config& config, const BatchArithmetic& batch, MemoryPlanner& planner,
                              const NodeBudget& budget, int stage);

/// `model`: in its trained form; its parameters have no tensors afterwards. A pure function of its arguments and this
/// process's number of threads, each of which has a workspace.
MemoryEstimate estimate_memory(const Config& config, const BatchArithmetic& batch, const Model& model,
                               const NodeBudget& budget);

/// If the run does not fit, throws InputError with its need, the node's offer and a configuration that fits.
void require_fit(const Config& config, const MemoryEstimate& estimate, const NodeBudget& budget);

}  // namespace zero
