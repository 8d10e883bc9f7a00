#pragma once
// How many processor cores a rank may count as its own: mpirun and srun may bind ranks to some cores, or leave all to
// all of them.
#include <bitset>
#include <vector>

namespace zero {

/// Cores that a process may run on, by the system's numbers.
using CoreSet = std::bitset<4096>;

/// Of this process (its affinity); empty when the system does not tell.
CoreSet own_cores();

/// Lets the calling thread run on these cores; where the system refuses, it stays where it is. An empty set changes
/// nothing.
void run_on_cores(const CoreSet& cores);

/// The share of rank `me` of a node, given the cores of all its ranks: each core is divided evenly among the ranks that
/// may run on it. Rounded down, at least 1.
int core_share(const std::vector<CoreSet>& of_ranks, int me);

}  // namespace zero
