#include "zero/train/run_estimate.h"

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/config/setup.h"
#include "zero/core/chain.h"
#include "zero/estimate/disk_room.h"
#include "zero/estimate/legal_layout.h"
#include "zero/estimate/meta_rank.h"
#include "zero/train/checkpoints.h"

namespace zero {
namespace {

NodeBudget budget_of(const Job& job, const EstimateRequest& request) {
  const int ranks_here = request.target.ranks_here(job.local_size());
  return request.target.named() ? budget_of(request.target, request.device)
                                : node_budget(request.config, request.former, ranks_here, request.device);
}

/// Throws InputError that names legal layouts, if the engine refuses this one.
MemoryEstimate estimate_of(const EstimateRequest& request, const NodeBudget& budget) {
  MemoryEstimate estimate;
  check_layout([&] { estimate = estimate_memory(request.config, request.batch, request.model, budget); },
               [&] {
                 const LayoutJob job{.ranks = request.batch.mesh.ranks(),
                                     .on_gpu = request.device.is_cuda(),
                                     .resumed = request.former == FormerRun::resumed};
                 return judge_layout(request.config, request.model.config, job);
               });
  return estimate;
}

/// Throws InputError for a described node with more ranks than the run. Rank 0 warns if the run's ranks do not fill the
/// last node.
void check_nodes(const EstimateRequest& request, int rank) {
  const int ranks = request.batch.mesh.ranks(), each = request.target.ranks_per_node;
  if (request.target.ranks > 0 && each > ranks)
    throw InputError(text("--ranks-per-node ", each, ": is more than the --ranks ", ranks,
                          " of the run; lower it, or raise --ranks"));
  if (rank == 0 && each > 1 && ranks % each != 0)
    log_warning("--ranks-per-node ", each, ": ", ranks, " ranks fill ", ranks / each, " nodes and leave ", ranks % each,
                " for another one; the estimate is of a full node");
}

/// Returns the reason why checkpoints are synchronous although they were configured as asynchronous.
std::string why_not_copied(const Config& config) {
  return copies_checkpoints(config) ? "there is no memory for a copy of the states"
                                    : "states lie on disk ([offload]), for want of memory that a copy would take";
}

bool on_all(Communicator& ranks, bool mine) {
  const std::vector<std::int64_t> all = all_gather_number(ranks, mine);
  return std::find(all.begin(), all.end(), 0) == all.end();
}

}  // namespace

MemoryEstimate print_estimate(Job& job, const EstimateRequest& request, bool with_configuration) {
  MemoryEstimate estimate;
  all_or_none(job.control(), [&] {
    check_nodes(request, job.rank());
    const NodeBudget budget = budget_of(job, request);
    estimate = estimate_of(request, budget);
    if (job.rank() == 0) {
      std::cout << estimate.table << estimate.stages << request.batch.describe() << '\n';
      MetaRank rank(chain_of(request.model), engine_options_of(request.config, request.batch),
                    memory_work_of(request.config, request.batch));
      for (const std::string& line : rank.engine().optimizers().describe()) std::cout << line << '\n';
      if (with_configuration) std::cout << '\n' << resolved_toml(request.config);
      std::cout << std::flush;
    }
    require_fit(request.config, estimate, budget);
  });
  return estimate;
}

MemoryEstimate require_memory(Job& job, const EstimateRequest& request) {
  const Config& config = request.config;
  MemoryEstimate estimate;
  all_or_none(job.control(), [&] {
    const NodeBudget budget = budget_of(job, request);
    estimate = estimate_of(request, budget);
    if (job.rank() == 0 && !estimate.fits) std::cout << estimate.table << std::flush;
    require_fit(config, estimate, budget);
    require_disk(job, request, estimate.plan, config.training.steps);
  });
  estimate.copies_checkpoints = on_all(job.control(), estimate.copies_checkpoints);
  estimate.keeps_inputs = on_all(job.control(), estimate.keeps_inputs);
  if (job.rank() == 0 && request.device.is_cuda())
    log_info("what norms and activation functions give is ", estimate.keeps_inputs ? "kept for" : "computed again in",
             " the backward pass (activation_checkpoint.keep)");
  if (job.rank() == 0 && config.checkpoint.asynchronous && config.checkpoint.is_regular() &&
      !estimate.copies_checkpoints)
    log_warning(config.where("checkpoint.asynchronous"), ": ", why_not_copied(config), ", so ",
                Checkpoints::training_waits);
  return estimate;
}

void require_disk(const Job& job, const EstimateRequest& request, const MemoryPlan& memory,
                  std::optional<std::int64_t> steps) {
  if (job.rank() != 0) return;  // rank 0's node has the output directory
  require_room(request.config, disk_need(request.config, request.model, memory, steps),
               output_room(request.config, request.former), offloaded_beside(request.config, memory, job.local_size()));
}

}  // namespace zero
