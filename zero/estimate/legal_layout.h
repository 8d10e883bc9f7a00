#pragma once
// LegalLayout: determines whether a configuration can run on a number of ranks, why not, and the nearest layout that
// can. It applies the configuration's checks and then builds one rank's engine on Meta. It finds every error that does
// not depend on weights or a device.
#include <string>
#include <vector>

#include "models/model_config.h"
#include "zero/config/config.h"

namespace zero {

struct LayoutVerdict {
  std::string why;      // error message of such a run; empty: the layout is legal
  std::string nearest;  // settings that make it legal, "parallel.tensor=2 zero.stage=1"; empty: none is known or needed

  bool is_legal() const { return why.empty(); }
};

/// Returns the error message of such a run; empty if the layout is legal. Examines the same keys as judge_layout() and
/// looks for no other layout.
std::string why_illegal(const Config& config, const ModelConfig& model, int ranks);

/// Examines [parallel], [zero], [offload], [lora], [optimizer], job.reproducible and the batch. Reads no weights. The
/// nearest layouts differ in one key of [parallel] or in zero.stage, the next ones in two. Then come layouts without
/// job.reproducible or lora.double_quantization, or with another optimizer.
LayoutVerdict judge_layout(const Config& config, const ModelConfig& model, int ranks);

/// Returns the verdicts on features (rows) and axes (columns) as a Markdown table for docs/results/layouts.md. Each
/// cell is "yes", or the section and key that rule out the layout.
std::string layout_table();

/// Returns illegal layouts with their error messages and the nearest legal layouts, in Markdown.
std::string refused_layouts();

}  // namespace zero
