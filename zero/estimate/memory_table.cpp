#include "zero/estimate/memory_table.h"

#include <cstdio>
#include <vector>

#include "base/byte_count.h"
#include "base/error.h"
#include "base/log.h"
#include "zero/config/config_rules.h"

namespace zero {
namespace {

std::string line(const char* pattern, auto... values) {
  char words[160];
  std::snprintf(words, sizeof words, pattern, values...);
  return std::string(words) + "\n";
}

std::string row(const char* name, std::int64_t rest, std::int64_t peak) {
  return rest == 0 && peak == 0 ? ""
                                : line("  %-24s %12s %12s", name, bytes_text(rest).c_str(), bytes_text(peak).c_str());
}

std::string of(std::int64_t offer) { return offer < 0 ? "" : " of " + bytes_text(offer); }

// Returns needed and available memory, a clause for each kind.
std::vector<std::string> needs_of(const MemoryEstimate& v, const NodeBudget& budget) {
  std::vector<std::string> clauses;
  if (budget.device_free)
    clauses.push_back("a rank takes " + bytes_text(v.plan.peak()) + of(*budget.device_free) + " of GPU memory");
  const std::string ranks = budget.ranks_here == 1 ? "1 rank takes " : text(budget.ranks_here, " ranks take ");
  if (budget.assumed) {
    const std::int64_t offer = budget.memory.available < 0 ? -1 : v.node_offer;
    clauses.push_back("a rank takes " + bytes_text(v.rank_peak) + of(offer < 0 ? -1 : offer / budget.ranks_here) +
                      " of host memory");
    if (budget.ranks_here > 1) clauses.push_back(ranks + bytes_text(v.node_peak) + of(offer) + " of a node's");
  } else {
    clauses.push_back(ranks + bytes_text(v.node_peak) +
                      (budget.memory.available < 0
                           ? " of this node"
                           : of(v.node_offer) + " of this node (" + budget.memory.source + ")"));
  }
  if (v.plan.disk > 0)
    clauses.push_back((budget.assumed ? "a rank takes " + bytes_text(v.plan.disk)
                                      : ranks + bytes_text(v.plan.disk * budget.ranks_here) + of(budget.disk_free)) +
                      " of disk");
  return clauses;
}

}  // namespace

std::string needs(const MemoryEstimate& estimate, const NodeBudget& budget) {
  std::string all;
  for (const std::string& clause : needs_of(estimate, budget)) all += (all.empty() ? "" : ", ") + clause;
  return all;
}

std::string answer_lines(const MemoryEstimate& estimate, const NodeBudget& budget) {
  const std::vector<std::string> clauses = needs_of(estimate, budget);
  std::string lines = (estimate.fits ? "it fits: " : "it does NOT fit: ") + clauses.front() + "\n";
  for (std::size_t i = 1; i < clauses.size(); ++i) lines += "  and " + clauses[i] + "\n";
  if (!estimate.fits)
    lines += estimate.nearest.empty() ? "  no change of stage, recomputation, offload or local batch makes it fit\n"
                                      : "  this fits: " + estimate.nearest + "\n";
  return lines;
}

std::string rank_table(const Config& config, const BatchArithmetic& batch, const MemoryEstimate& v,
                       const NodeBudget& budget) {
  const MemoryPlan& p = v.plan;
  const ActivationBytes& a = p.activations;
  const bool on_device = budget.device_free.has_value();
  std::string table = text("memory of one rank, stage ", config.zero.stage, ", ", batch.mesh.ranks(),
                           batch.mesh.ranks() == 1 ? " rank, " : " ranks, ", batch.local_batch_size, " x ",
                           config.row_tokens(), " tokens", on_device ? ", on a GPU\n" : "\n");
  table += line("  %-24s %12s %12s", "", "at rest", "at peak");
  table += row("parameters", p.parameters, p.parameters);
  table += row("gradients", p.gradients, p.gradients);
  table += row("optimizer state", p.optimizer, p.optimizer);
  table += row("gather buffers", p.gather_buffers, p.gather_buffers);
  table += row("reduce buffers", p.reduce_buffers, p.reduce_buffers);
  table += row("parts of sums", p.sums, p.sums);
  table += row("workspace of products", p.workspace, p.workspace);
  table += row("activations", a.at_rest, a.activations + a.batch);
  table += row("logits", 0, a.logits);
  table += row("gradients of a unit", 0, a.unit_gradients);
  table += row("copy of a checkpoint", p.copy, p.copy);
  table += row("whole matrices", 0, p.training_peak() - p.micro_batch_peak());
  table += row("loading and saving", 0, p.peak() - p.training_peak());
  if (on_device) {
    table += row("sum on the GPU", p.at_rest(), p.peak());
    table += row("states on the host", p.host, p.host);
    table += row("page-locked memory", p.pinned, p.pinned);
    table += row("process, on the host", budget.process, v.process);
  } else {
    table += row("process and pool", budget.process, v.process);
    table += row("sum", p.at_rest() + budget.process, p.peak() + v.process);
  }
  return table + row("disk", p.disk, p.disk);
}

namespace {

/// Returns true if a run at this stage would be refused, as stage 3 is in a pipeline without parallel.regather.
bool is_refused(Config config, int stage, int ranks) {
  config.zero.stage = stage;
  try {
    check_contradictions(config);
    BatchArithmetic::of(config, ranks);
    return false;
  } catch (const InputError&) {
    return true;
  }
}

}  // namespace

std::string stage_table(const Config& config, const BatchArithmetic& batch, MemoryPlanner& planner,
                        const NodeBudget& budget) {
  const bool on_device = budget.device_free.has_value();
  std::string table = text("one rank at its peak, by stage", on_device ? ", on a GPU\n" : "\n");
  table += line("  %5s %11s %10s %10s %10s %11s %10s %4s", "stage", "parameters", "gradients", "optimizer", "buffers",
                "activations", "sum", "fits");
  std::string kept, computed_again;
  for (int stage = 0; stage <= 3; ++stage) {
    const MemoryEstimate v = estimate_stage(config, batch, planner, budget, stage);
    std::string& stages = v.keeps_inputs ? kept : computed_again;
    stages += (stages.empty() ? "" : ", ") + std::to_string(stage);
    const MemoryPlan& p = v.plan;
    const std::int64_t sum = on_device ? p.peak() : v.rank_peak;
    table += line("  %4d%s %11s %10s %10s %10s %11s %10s %4s", stage, stage == config.zero.stage ? "*" : " ",
                  bytes_text(p.parameters).c_str(), bytes_text(p.gradients).c_str(), bytes_text(p.optimizer).c_str(),
                  bytes_text(p.gather_buffers + p.reduce_buffers).c_str(),
                  bytes_text(p.activations.peak() + p.activations.batch).c_str(), bytes_text(sum).c_str(),
                  is_refused(config, stage, batch.mesh.ranks()) ? "-"
                  : v.fits                                      ? "yes"
                                                                : "no");
  }
  if (table.find(" -\n") != std::string::npos) table += "  -: the other settings rule this stage out\n";
  if (on_device)
    table += text("  activation_checkpoint.keep is ", kept.empty() ? "" : "on at stage " + kept,
                  kept.empty() || computed_again.empty() ? "" : ", ",
                  computed_again.empty() ? "" : "off at stage " + computed_again, "\n");
  return table;
}

}  // namespace zero
