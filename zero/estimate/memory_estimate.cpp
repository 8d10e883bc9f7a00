#include "zero/estimate/memory_estimate.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

#include "base/byte_count.h"
#include "base/error.h"
#include "base/files/free_space.h"
#include "base/log.h"
#include "models/nn/head.h"
#include "offload/memory/page_arena.h"
#include "offload/memory/process_memory.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/estimate/disk_room.h"
#include "zero/estimate/memory_table.h"
#include "zero/estimate/nearest_fit.h"

namespace zero {
namespace {

// Growth of a fresh process: code and tables of the matrix library, its packing buffers, thread stacks.
constexpr std::int64_t warm_process = std::int64_t{32} << 20;

// The share of a GPU's free memory to use if less suffices: its allocator's blocks are larger than tensors.
constexpr double share_of_device = 0.9;

MemoryEstimate estimate_work(MemoryWork work, const BatchArithmetic& batch, MemoryPlanner& planner,
                             const NodeBudget& budget) {
  const bool on_device = budget.device_free.has_value();
  if (on_device) {
    work.on_device = true;
    work.engine.overlap = batch.mesh.ranks() > 1;
    work.activations.logits_bytes = default_device_logits_bytes;
  }
  MemoryEstimate estimate;
  estimate.plan = planner.plan(work);
  estimate.copies_checkpoints = work.copies_checkpoints;
  estimate.keeps_inputs = work.engine.keep_inputs;
  const std::int64_t in_memory = on_device ? estimate.plan.host + estimate.plan.pinned : estimate.plan.peak();
  estimate.process = process_peak(budget.process, in_memory);
  estimate.rank_peak = in_memory + estimate.process;
  estimate.node_peak = estimate.rank_peak * budget.ranks_here;
  estimate.node_offer =
      budget.memory.available + budget.process * budget.ranks_here;  // ranks keep the memory that they hold now
  estimate.fits = budget.memory.available < 0 || estimate.node_peak <= estimate.node_offer;
  if (budget.disk_free >= 0 && estimate.plan.disk * budget.ranks_here > budget.disk_free) estimate.fits = false;
  if (on_device && estimate.plan.peak() > *budget.device_free) estimate.fits = false;
  return estimate;
}

/// Returns true if a GPU has enough memory for tensors that are optional to keep.
bool has_room(const MemoryEstimate& estimate, const NodeBudget& budget) {
  return estimate.fits && double(estimate.plan.peak()) <= share_of_device * double(*budget.device_free);
}

MemoryEstimate estimate_one(const Config& config, const BatchArithmetic& batch, MemoryPlanner& planner,
                            const NodeBudget& budget) {
  MemoryWork work = memory_work_of(config, batch);
  work.engine.fuse_accumulation = budget.device_free && fuses_accumulation_on_gpus(config);
  MemoryEstimate estimate = estimate_work(work, batch, planner, budget);
  if (!estimate.fits && work.copies_checkpoints) {
    work.copies_checkpoints = false;
    estimate = estimate_work(work, batch, planner, budget);
  }
  if (config.activation_checkpoint.keep == "auto" && budget.device_free && estimate.fits) {
    work.engine.keep_inputs = true;
    const MemoryEstimate keeping = estimate_work(work, batch, planner, budget);
    if (has_room(keeping, budget)) return keeping;
  }
  return estimate;
}

std::string disk_lines(const Config& config, const Model& model, const MemoryPlan& plan, const NodeBudget& budget) {
  const DiskNeed need = disk_need(config, model, plan, config.training.steps);
  std::string lines = text("disk: the ", config.lora ? "adapter " : "model ", bytes_text(need.result),
                           ", a checkpoint ", bytes_text(plan.checkpoint));
  lines += !config.checkpoint.is_regular() ? "\n  (written where a signal stops the run)"
                                           : "\n  those of the run " + bytes_text(need.checkpoints);
  return lines + (budget.output_room < 0 ? "\n" : "; there is room for " + bytes_text(budget.output_room) + "\n");
}

}  // namespace

std::int64_t process_peak(std::int64_t process_now, std::int64_t tracked_peak) {
  const PageArenaOptions pool;
  return process_now + warm_process +
         std::max(std::int64_t(pool.slack_bytes), std::int64_t(pool.slack_fraction * double(tracked_peak)));
}

NodeBudget node_budget(const Config& config, FormerRun former, int ranks_here, at::Device device) {
  NodeBudget budget;
  budget.ranks_here = ranks_here;
  budget.memory = node_memory();
  budget.disk_free = free_disk_bytes(offload_directory(config));
  budget.process = pss_bytes();
  budget.output_room = output_room(config, former);
  if (!device.is_cpu())
    budget.device_free = std::int64_t(at::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).first) /
                         std::max<std::int64_t>(1, config.comm.ranks_per_gpu);
  return budget;
}

MemoryEstimate estimate_stage(const Config& config, const BatchArithmetic& batch, MemoryPlanner& planner,
                              const NodeBudget& budget, int stage) {
  Config other = config;
  other.zero.stage = stage;
  if (stage < 3) other.offload.parameters = "none";
  return estimate_one(other, batch, planner, budget);
}

MemoryEstimate estimate_memory(const Config& config, const BatchArithmetic& batch, const Model& model,
                               const NodeBudget& budget) {
  MemoryPlanner planner(model);
  MemoryEstimate estimate = estimate_one(config, batch, planner, budget);
  if (!estimate.fits) {
    const auto fits = [&](const Config& other, const BatchArithmetic& its) {
      if (other.lora.has_value() == config.lora.has_value()) return estimate_one(other, its, planner, budget).fits;
      const RunModel run = make_run_model(other, model.config, false, {its.mesh.tensor, 0});
      MemoryPlanner its_planner(run.own);
      return estimate_one(other, its, its_planner, budget).fits;
    };
    estimate.nearest = nearest_fit(config, batch, budget.device_free.has_value(), fits);
  }
  estimate.table = answer_lines(estimate, budget) + rank_table(config, batch, estimate, budget);
  estimate.stages = stage_table(config, batch, planner, budget) + disk_lines(config, model, estimate.plan, budget);
  return estimate;
}

void require_fit(const Config& config, const MemoryEstimate& estimate, const NodeBudget& budget) {
  if (estimate.fits) return;
  throw InputError(text(
      config.where("zero.stage"), ": does not fit: ", needs(estimate, budget), "; ",
      estimate.nearest.empty()
          ? "no stage, recomputation, offload or smaller local_batch_size makes it fit: use more ranks on more nodes, a shorter seq_len or a smaller model"
          : "this fits: " + estimate.nearest));
}

}  // namespace zero
