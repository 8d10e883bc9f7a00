#pragma once
// LegalLayout: whether a configuration can run on so many ranks, why not, and the nearest layout that can. It applies
// the rules of the configuration and then makes one rank's engine on Meta. It finds every refusal that needs neither
// weights nor a device.
#include <string>
#include <vector>

#include "models/model_config.h"
#include "zero/config/config.h"

namespace zero {

struct LayoutVerdict {
  std::string why;      // the message with which a run would end; empty: the layout is legal
  std::string nearest;  // settings that make it legal, "parallel.tensor=2 zero.stage=1"; empty: none known, or needed

  bool is_legal() const { return why.empty(); }
};

/// Looks at the keys of [parallel], [zero], [offload], [lora], [optimizer], job.reproducible and the batch. Reads no
/// weights. Nearest are layouts that differ in one key of [parallel] or in zero.stage, then in two, then those without
/// job.reproducible, lora.double_quantization or an optimizer that does not take the layout.
LayoutVerdict judge_layout(const Config& config, const ModelConfig& model, int ranks);

/// The verdicts on features (rows) and axes (columns) as a table in Markdown, for docs/results/layouts.md. Each cell is
/// "yes", or the section and key that refuse the layout.
std::string layout_table();

/// Layouts that are refused, with their messages and the nearest legal ones, in Markdown.
std::string refused_layouts();

}  // namespace zero
