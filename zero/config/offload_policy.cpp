#include "zero/config/offload_policy.h"

#include "base/log.h"
#include "offload/disk/disk_shard_store.h"
#include "offload/disk/disk_tier.h"
#include "offload/memory/host_shard_store.h"

namespace zero {

OffloadPolicy offload_policy_of(const Config& config, int rank, at::Device device) {
  OffloadPolicy policy;
  std::shared_ptr<DiskTier> tier;
  DiskTierOptions options;
  options.directory = config.offload.nvme_dir;
  options.rank = rank;
  if (config.offload.optimizer == "nvme") {
    tier = DiskTier::create(options);
    if (rank == 0) log_info("optimizer states are on disk in ", options.directory, ", through ", tier->io_name());
    policy.optimizer = [tier](const std::string& name, std::int64_t elements, const std::vector<StateSpec>& states) {
      return tier->make_store(name, elements, states);
    };
  }
  if (config.offload.optimizer == "cpu" && !device.is_cpu()) policy.optimizer = host_state_stores();
  if (config.offload.parameters == "cpu") {
    policy.weights = [device](const std::vector<std::int64_t>& bytes) { return make_host_shard_store(bytes, device); };
  } else if (config.offload.parameters == "nvme") {
    policy.weights = [tier, options](const std::vector<std::int64_t>& bytes) {
      return make_disk_shard_store(bytes, {options}, tier);
    };
  }
  return policy;
}

}  // namespace zero
