#include "zero/train/verdict.h"

#include <ATen/Parallel.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <cstdio>

#include "comm/error.h"
#include "comm/log.h"
#include "models/head.h"
#include "offload/page_arena.h"
#include "offload/process_memory.h"
#include "zero/train/nearest_fit.h"
#include "zero/train/resume.h"

namespace zero {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0, mib = 1024.0 * 1024.0;

// Beyond what a fresh process holds: code and tables of the matrix library, its packing buffers, stacks of threads.
constexpr std::int64_t warm_process = std::int64_t{32} << 20;

std::string in_gib(std::int64_t bytes) {
  char words[32];
  std::snprintf(words, sizeof words, "%.2f GiB", double(bytes) / gib);
  return words;
}

Verdict weigh(const Config& config, const BatchArithmetic& batch, const Model& model, const NodeBudget& budget) {
  MemoryWork work = memory_work_of(config, batch, budget.threads);
  const bool on_device = budget.device_free.has_value();
  if (on_device) {
    work.on_device = true;
    work.engine.overlap = batch.ranks > 1;
    work.activations.logits_bytes = default_device_logits_bytes;
  }
  Verdict verdict;
  verdict.plan = plan_memory(model, work);
  const std::int64_t in_memory = on_device ? verdict.plan.host + verdict.plan.pinned : verdict.plan.peak();
  verdict.process = process_peak(budget.process, in_memory);
  verdict.rank_peak = in_memory + verdict.process;
  verdict.node_peak = verdict.rank_peak * budget.ranks_here;
  verdict.node_offer = budget.memory.available + budget.process * budget.ranks_here;  // what the ranks hold now is theirs
  verdict.fits = budget.memory.available < 0 || verdict.node_peak <= verdict.node_offer;
  if (budget.disk_free >= 0 && verdict.plan.disk * budget.ranks_here > budget.disk_free) verdict.fits = false;
  if (on_device && verdict.plan.peak() > *budget.device_free) verdict.fits = false;
  return verdict;
}

class Table {
 public:
  void line(const std::string& words) { text_ += words + "\n"; }
  void row(const char* name, std::int64_t rest, std::int64_t peak) {
    if (rest == 0 && peak == 0) return;
    char words[96];
    std::snprintf(words, sizeof words, "  %-24s %12.1f %12.1f", name, double(rest) / mib, double(peak) / mib);
    line(words);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string stage_line(const Config& config, const BatchArithmetic& batch, const Model& model, const NodeBudget& budget) {
  std::string line = "the node at each stage:";
  for (int stage = 0; stage <= 3; ++stage) {
    Config other = config;
    other.zero.stage = stage;
    if (stage < 3) other.offload.parameters = "none";
    line += text(stage == 0 ? " " : ", ", stage, stage == config.zero.stage ? "*: " : ": ", in_gib(weigh(other, batch, model, budget).node_peak));
  }
  return line;
}

std::string checkpoint_line(const Config& config, const MemoryPlan& plan, const NodeBudget& budget) {
  std::string line = "a checkpoint takes " + in_gib(plan.checkpoint) + " on disk";
  if (config.checkpoint.interval == 0) return line + "; one is written where a signal stops the run";
  line += text(", those of the run ", in_gib(checkpoints_bytes(config, plan)));
  return budget.checkpoint_room < 0 ? line : line + " of " + in_gib(budget.checkpoint_room);
}

std::string answer(const Verdict& verdict, const NodeBudget& budget) {
  if (verdict.fits) return "it fits";
  return "it does NOT fit" + (verdict.nearest.empty() ? std::string() : "; the nearest configuration that does: " + verdict.nearest);
}

std::string table_of(const Config& config, const BatchArithmetic& batch, const Model& model, const NodeBudget& budget, const Verdict& v) {
  const MemoryPlan& p = v.plan;
  const ActivationBytes& a = p.activations;
  const bool on_device = budget.device_free.has_value();
  Table table;
  table.line(text("memory of one rank in MiB, stage ", config.zero.stage, ", ", batch.ranks, batch.ranks == 1 ? " rank, " : " ranks, ",
                  batch.local_batch_size, " x ", config.training.seq_len, " tokens", on_device ? ", on the GPU" : ""));
  char head[96];
  std::snprintf(head, sizeof head, "  %-24s %12s %12s", "", "at rest", "at peak");
  table.line(head);
  table.row("parameters", p.parameters, p.parameters);
  table.row("gradients", p.gradients, p.gradients);
  table.row("optimizer state", p.optimizer, p.optimizer);
  table.row("gather buffers", p.gather_slots, p.gather_slots);
  table.row("reduce buffers", p.reduce_slots, p.reduce_slots);
  table.row("activations", a.at_rest, a.activations + p.batch);
  table.row("logits", 0, a.logits);
  table.row("gradients of a unit", 0, a.unit_gradients);
  table.row("loading and saving", 0, p.peak() - p.training_peak());
  table.row(on_device ? "process, on the host" : "process and pool", budget.process, v.process);
  table.row("sum", p.at_rest() + budget.process, p.peak() + v.process);
  table.row("states on the host", p.host, p.host);
  table.row("page-locked memory", p.pinned, p.pinned);
  table.row("disk", p.disk, p.disk);
  table.line(stage_line(config, batch, model, budget));
  table.line(text("this node: ", budget.ranks_here, budget.ranks_here == 1 ? " rank takes " : " ranks take ", in_gib(v.node_peak), " of ", in_gib(v.node_offer),
                  " (", budget.memory.source, ")", p.disk > 0 ? text(", on disk ", in_gib(p.disk * budget.ranks_here), budget.disk_free >= 0 ? " of " + in_gib(budget.disk_free) : "") : "",
                  on_device ? text("; the GPU ", in_gib(p.peak()), " of ", in_gib(*budget.device_free)) : "", ": ", answer(v, budget)));
  table.line(checkpoint_line(config, p, budget));
  return table.text();
}

}  // namespace

std::int64_t process_peak(std::int64_t process_now, std::int64_t ledger_peak) {
  const PageArenaOptions pool;
  return process_now + warm_process + std::max(std::int64_t(pool.slack_bytes), std::int64_t(pool.slack_fraction * double(ledger_peak)));
}

NodeBudget node_budget(const Config& config, int ranks_here, at::Device device) {
  NodeBudget budget;
  budget.ranks_here = ranks_here;
  budget.threads = at::get_num_threads();
  budget.memory = node_memory();
  if (!config.offload.nvme_dir.empty()) budget.disk_free = free_disk_bytes(config.offload.nvme_dir);
  budget.process = pss_bytes();
  FileCalls calls;
  if (const std::int64_t free = free_disk_bytes(config.job.output_dir); free >= 0)
    budget.checkpoint_room = free + CheckpointFolders(calls, checkpoints_root(config)).bytes();
  if (!device.is_cpu())
    budget.device_free = std::int64_t(at::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).first) / std::max<std::int64_t>(1, config.comm.ranks_per_gpu);
  return budget;
}

std::int64_t checkpoints_bytes(const Config& config, const MemoryPlan& plan) { return (config.checkpoint.keep + 1) * plan.checkpoint; }

void require_checkpoint_room(const Config& config, const Verdict& verdict, const NodeBudget& budget) {
  const std::int64_t needed = checkpoints_bytes(config, verdict.plan);
  if (config.checkpoint.interval == 0 || budget.checkpoint_room < 0 || needed <= budget.checkpoint_room) return;
  throw InputError(text(config.where("checkpoint.keep"), ": ", config.checkpoint.keep, " checkpoints of ", in_gib(verdict.plan.checkpoint), " and the one being written take ",
                        in_gib(needed), " of ", in_gib(budget.checkpoint_room), " under job.output_dir: free some space, lower keep, or name another output_dir"));
}

Verdict judge_memory(const Config& config, const BatchArithmetic& batch, const Model& model, const NodeBudget& budget) {
  Verdict verdict = weigh(config, batch, model, budget);
  if (!verdict.fits) {
    const auto fits = [&](const Config& other, const BatchArithmetic& its) { return weigh(other, its, model, budget).fits; };
    verdict.nearest = nearest_fit(config, batch, budget.device_free.has_value(), fits);
  }
  verdict.table = table_of(config, batch, model, budget, verdict);
  return verdict;
}

void require_fit(const Config& config, const Verdict& verdict, const NodeBudget& budget) {
  if (verdict.fits) return;
  std::string need = text(config.where("zero.stage"), ": does not fit: this node's ", budget.ranks_here, " rank(s) would take ", in_gib(verdict.node_peak), " of ",
                          in_gib(verdict.node_offer), " of memory (", budget.memory.source, ")");
  if (verdict.plan.disk > 0 && budget.disk_free >= 0)
    need += text(" and ", in_gib(verdict.plan.disk * budget.ranks_here), " of ", in_gib(budget.disk_free), " under offload.nvme_dir");
  if (budget.device_free) need += text(" and ", in_gib(verdict.plan.peak()), " of ", in_gib(*budget.device_free), " of each GPU");
  throw InputError(need + "; " + (verdict.nearest.empty() ? "no stage, checkpointing or offload makes it fit: use more nodes, a shorter seq_len or a smaller model"
                                                          : "this fits: " + verdict.nearest));
}

}  // namespace zero
