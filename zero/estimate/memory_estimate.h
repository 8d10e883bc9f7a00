#pragma once
// MemoryEstimate: predicts, before anything is allocated, whether a run fits into memory. If not, it proposes a
// configuration that fits.
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
  std::int64_t process = 0;                 // current Pss of a rank: memory in use before anything is allocated
  std::optional<std::int64_t> device_free;  // on a GPU: free memory, without CUDA's context
  std::int64_t output_room = -1;            // bytes that the run may write to job.output_dir (disk_room.h); -1: unknown
  bool assumed = false;                     // true: the machine was described by the user, not inspected
};

/// Returns the current budget of the node that this process runs on. `former`: treatment of an earlier run in the
/// output directory. `device`: the rank's device.
NodeBudget node_budget(const Config& config, FormerRun former, int ranks_here, at::Device device);

/// Returns the Pss of a rank's process at the peak, without the bytes that its tracker counts. It includes the initial
/// Pss, libraries loaded later, and the memory pool's slack.
std::int64_t process_peak(std::int64_t process_now, std::int64_t tracked_peak);

struct MemoryEstimate {
  MemoryPlan plan;
  std::int64_t process = 0;         // bytes that the tracker does not count: libraries, thread stacks, pool slack
  std::int64_t rank_peak = 0;       // host bytes of a rank, including `process`
  std::int64_t node_peak = 0;       // over all ranks of the node
  std::int64_t node_offer = 0;      // available to them
  bool copies_checkpoints = false;  // configured, and memory suffices; otherwise the run waits for its checkpoints
  bool keeps_inputs = false;        // outputs of norms and activations: configured, or memory suffices
  bool fits = false;
  // if it does not fit: the nearest configuration that does, as arguments; empty: none
  std::string nearest;
  std::string table;   // text: the verdict, then one rank's memory at rest and at its peak
  std::string stages;  // text: one rank's peak memory at every stage, and the size of checkpoints
};

/// Returns the plan of one stage on a node, and whether it fits.
MemoryEstimate estimate_stage(const Config& config, const BatchArithmetic& batch, MemoryPlanner& planner,
                              const NodeBudget& budget, int stage);

/// `model`: as trained; its parameters have no tensors afterwards. The result depends only on the arguments and on this
/// process's number of threads, since each thread has a workspace.
MemoryEstimate estimate_memory(const Config& config, const BatchArithmetic& batch, const Model& model,
                               const NodeBudget& budget);

/// If the run does not fit, throws InputError that names the memory it needs, the memory available, and a configuration
/// that fits.
void require_fit(const Config& config, const MemoryEstimate& estimate, const NodeBudget& budget);

}  // namespace zero
