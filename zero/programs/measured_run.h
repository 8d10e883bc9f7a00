#pragma once
// MeasuredRun: the step time and the memory of a run, from its output directory, for comparison with a plan.
#include <string>

#include "zero/plan/layout_search.h"
#include "zero/plan/plan_table.h"

namespace zero {

struct MeasuredRun {
  std::string config;  // path of the run's config.toml
  int ranks = 0;       // 0: unknown
  bool resumed = false;
  MeasuredFigures figures;     // of the last start
  double tokens_per_step = 0;  // 0: unknown

  /// Why the figures cannot be compared with a plan for `machine`; empty if they can. A comparison needs two timed
  /// steps on as many ranks of this machine. `here`: the plan is for this machine.
  std::string why_not_compared(const PlanMachine& machine, bool here) const;
};

/// Returns true for the output directory of a run: it holds config.toml.
bool is_run_folder(const std::string& path);

/// Reads a run. One without metrics.jsonl has no timed step.
MeasuredRun measured_run(const std::string& folder);

/// Returns two lines: step time and memory, measured and predicted, with the error of the prediction.
std::string comparison_text(const MeasuredRun& run, const PlannedLayout& planned);

}  // namespace zero
