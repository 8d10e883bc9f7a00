#pragma once
// The number of processor cores that a rank may use. mpirun and srun may bind each rank to some cores, or let all ranks
// use all cores.
#include <bitset>
#include <vector>

namespace zero {

/// The cores that a process may run on, by the system's core numbers.
using CoreSet = std::bitset<4096>;

/// The cores of this process (its affinity). Empty if the system does not say.
CoreSet own_cores();

/// Lets the calling thread run on these cores. If the system does not allow it, the thread stays where it is. An empty
/// set changes nothing.
void run_on_cores(const CoreSet& cores);

/// The number of cores for rank `me` of a node. `of_ranks` holds the cores that each rank of the node may use. Each
/// core is divided evenly among the ranks that may run on it. The result is rounded down and is at least 1.
int core_share(const std::vector<CoreSet>& of_ranks, int me);

}  // namespace zero
