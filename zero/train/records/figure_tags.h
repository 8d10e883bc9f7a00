#pragma once
// Tags: the names of a run's figures in dashboards, which group them by the part before the slash.
#include <string>
#include <utility>
#include <vector>

#include "zero/train/metrics.h"

namespace zero {

/// The figures of a step by their tags: "train/loss", "validation/loss", "system/tokens_per_second",
/// "time/step_products". A tag is a group and the figure's name in metrics.jsonl.
std::vector<std::pair<std::string, double>> tagged_figures(const StepMetrics& metrics);

}  // namespace zero
