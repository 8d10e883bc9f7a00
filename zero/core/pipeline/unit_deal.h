#pragma once
// Distributes the units of a chain over the stages of a pipeline, so that the stage with the most work has as little as
// possible.
#include <cstdint>
#include <vector>

#include "zero/core/chain.h"

namespace zero {

/// Returns each unit's work for one token, in multiplications of a forward pass: the elements of its matrices,
/// including borrowed ones. The first unit only looks up rows, so its work is 0.
std::vector<std::int64_t> costs_of(const Chain& chain);

/// Returns true if the last unit borrows from the first one (tied embeddings).
bool has_tied_ends(const Chain& chain);

/// Distributes `costs.size()` units in order. A stage gets `chunks` runs, which are not adjacent. With tied ends the
/// last unit is a run of its own on the first stage, which holds the borrowed parameter. Every element thus has one
/// owner. Throws InputError if there are too few units between the first and the last.
std::vector<UnitRun> deal_units(const std::vector<std::int64_t>& costs, bool tied, int stages, int chunks);

}  // namespace zero
