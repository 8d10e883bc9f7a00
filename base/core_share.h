#pragma once
// The number of processor cores that a rank may use. mpirun and srun may bind each rank to some cores, or let all ranks
// use all cores.
#include <bitset>
#include <vector>

namespace zero {

/// The cores that a process may run on, by the system's numbers.
using CoreSet = std::bitset<4096>;

/// The cores of this process (its affinity). Empty if the system does not say.
CoreSet own_cores();

/// Lets the calling thread run on these cores. If the system refuses, the thread stays where it is. An empty set
/// changes nothing.
void run_on_cores(const CoreSet& cores);

/// The share of rank `me` of a node, given the cores of all its ranks. Each core is divided evenly among the ranks that
/// may run on it. Rounded down, at least 1.
int core_share(const std::vector<CoreSet>& of_ranks, int me);

}  // namespace zero
