#pragma once
// MemoryTable: formats a memory estimate in lines of at most 80 columns.
#include <string>

#include "zero/estimate/memory_estimate.h"

namespace zero {

/// Returns the needed and the available memory in one clause: "2 ranks take 9.38 GiB of this node's 20.14 GiB
/// (MemAvailable)". GPUs and disk are included if they matter.
std::string needs(const MemoryEstimate& estimate, const NodeBudget& budget);

/// "it fits" or "it does NOT fit", a line per kind of memory, and the nearest change that fits.
std::string answer_lines(const MemoryEstimate& estimate, const NodeBudget& budget);

/// Bytes of one rank by purpose, at rest and at the peak of a step.
std::string rank_table(const Config& config, const BatchArithmetic& batch, const MemoryEstimate& estimate,
                       const NodeBudget& budget);

/// Peak bytes of one rank, a line per stage, with the verdict for each.
std::string stage_table(const Config& config, const BatchArithmetic& batch, MemoryPlanner& planner,
                        const NodeBudget& budget);

}  // namespace zero
