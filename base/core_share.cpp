#include "base/core_share.h"

#include <sched.h>

#include <algorithm>
#include <array>

namespace zero {

CoreSet own_cores() {
  std::array<unsigned long, CoreSet().size() / (8 * sizeof(unsigned long))> words{};
  CoreSet cores;
  if (sched_getaffinity(0, sizeof words, reinterpret_cast<cpu_set_t*>(words.data())) != 0) return cores;
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  for (std::size_t core = 0; core < cores.size(); ++core) cores[core] = words[core / bits] >> (core % bits) & 1;
  return cores;
}

void run_on_cores(const CoreSet& cores) {
  if (cores.none()) return;
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  std::array<unsigned long, CoreSet().size() / bits> words{};
  for (std::size_t core = 0; core < cores.size(); ++core)
    if (cores[core]) words[core / bits] |= 1ul << (core % bits);
  sched_setaffinity(0, sizeof words, reinterpret_cast<const cpu_set_t*>(words.data()));
}

int core_share(const std::vector<CoreSet>& of_ranks, int me) {
  double share = 0;
  for (std::size_t core = 0; core < of_ranks[me].size(); ++core)
    if (of_ranks[me][core])
      share +=
          1.0 / std::count_if(of_ranks.begin(), of_ranks.end(), [core](const CoreSet& cores) { return cores[core]; });
  return std::max(1, static_cast<int>(share + 1e-9));  // a third of three cores is one core
}

}  // namespace zero
