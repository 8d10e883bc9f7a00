#pragma once
// Deals the units of a chain out to the stages of a pipeline, so that the fullest stage has as little work as possible.
#include <cstdint>
#include <vector>

#include "zero/core/chain.h"

namespace zero {

/// The work of a unit for one token, in multiplications of a forward pass: the elements of its matrices, borrowed ones
/// included. The first unit looks rows up and has none.
std::vector<std::int64_t> costs_of(const Chain& chain);

/// True if the last unit borrows from the first one (tied embeddings).
bool has_tied_ends(const Chain& chain);

/// Deals `costs.size()` units out in order. A stage gets `chunks` runs, which are apart from each other. With tied ends
/// the last unit is a run of its own on the first stage, next to the parameter that it borrows: one element, one owner.
/// Throws InputError if there are not enough units between the first and the last.
std::vector<UnitRun> deal_units(const std::vector<std::int64_t>& costs, bool tied, int stages, int chunks);

}  // namespace zero
