#pragma once
// Places for states and weights outside of memory, in tests with simulated ranks.
#include <string>

#include "offload/disk/disk_shard_store.h"
#include "offload/disk/disk_tier.h"
#include "offload/memory/host_shard_store.h"
#include "zero/core/model_states.h"

namespace zero::testing {

enum class Home { host, disk };

/// Returns the policy of one rank. On disk, shards are in `folder` and have several chunks each. `through_host`:
/// gradients and weights pass through host buffers, as on a GPU.
inline OffloadPolicy policy_at(Home home, const std::string& folder, int rank, bool through_host = false) {
  OffloadPolicy policy;
  policy.through_host = through_host;
  DiskTierOptions disk;
  disk.directory = folder;
  disk.rank = rank;
  disk.chunk_bytes = 3 * 4096 * 4;
  const std::shared_ptr<DiskTier> tier = home == Home::disk ? DiskTier::create(disk) : nullptr;
  policy.optimizer = [tier](const std::string& name, std::int64_t elements, const std::vector<StateSpec>& states) {
    return tier ? tier->make_store(name, elements, states) : host_state_stores()(name, elements, states);
  };
  policy.weights = [tier, disk](const std::vector<std::int64_t>& bytes) {
    return tier ? make_disk_shard_store(bytes, {disk}, tier) : make_host_shard_store(bytes);
  };
  return policy;
}

}  // namespace zero::testing
