#pragma once
// MemoryTable: an estimate on memory as lines of at most 80 columns.
#include <string>

#include "zero/estimate/memory_estimate.h"

namespace zero {

/// What would be taken of what is there, in one clause: "2 ranks take 9.38 GiB of this node's 20.14 GiB
/// (MemAvailable)", with GPUs and disk where they count.
std::string needs(const MemoryEstimate& estimate, const NodeBudget& budget);

/// "it fits" or "it does NOT fit", what is taken of what, a line each, and the nearest change that fits.
std::string answer_lines(const MemoryEstimate& estimate, const NodeBudget& budget);

/// Bytes of one rank by what they are for, at rest and at the peak of a step.
std::string rank_table(const Config& config, const BatchArithmetic& batch, const MemoryEstimate& estimate,
                       const NodeBudget& budget);

/// Bytes of one rank at its peak, a line for each stage, with the answer for each.
std::string stage_table(const Config& config, const BatchArithmetic& batch, MemoryPlanner& planner,
                        const NodeBudget& budget);

}  // namespace zero
