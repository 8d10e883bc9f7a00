#pragma once
// MeasuredRun: the step time and the memory of a run, from its output directory, for comparison with a plan.
#include <string>

#include "zero/plan/layout_search.h"
#include "zero/plan/plan_table.h"

namespace zero {

struct MeasuredRun {
  std::string config;  // path of the run's config.toml
  int ranks = 0;       // 0: unknown
  MeasuredFigures figures;
};

/// Returns true for the output directory of a run: it holds config.toml and metrics.jsonl.
bool is_run_folder(const std::string& path);

/// Reads a run. Throws InputError if it has fewer than two timed steps.
MeasuredRun measured_run(const std::string& folder);

/// Returns two lines: step time and memory, measured and predicted, with the error of the prediction.
std::string comparison_text(const MeasuredRun& run, const PlannedLayout& planned);

}  // namespace zero
