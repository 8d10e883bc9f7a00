#pragma once
// CollectiveProbe: times of the collectives between the ranks of this node, for NodeLinks.
#include <string>

#include "comm/communicator.h"
#include "zero/plan/node_links.h"
#include "zero/plan/timings.h"

namespace zero {

/// Times each call with a small and a large vector in bf16. Rank 0 writes the seconds of the slowest rank to a JSON
/// file. Collective.
void probe_collectives(Communicator& communicator, const std::string& path);

/// Starts `program --probe FILE` on `ranks` ranks under mpirun, and keeps its numbers. Returns an empty string, or why
/// there are no numbers.
std::string run_probe(const std::string& program, int ranks, Timings& timings);

/// Returns the lines of this node from those numbers. Without them, the lines come from `memory_rate`, the bytes per
/// second at which a rank copies memory. A byte that is sent is written once and read once, and a sum reads two more.
NodeLinks links_of_node(int ranks, const Timings& timings, double memory_rate, const std::string& why_not_measured);

}  // namespace zero
