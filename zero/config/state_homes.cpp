#include "zero/config/state_homes.h"

#include "base/log.h"
#include "offload/disk/disk_shard_store.h"
#include "offload/disk/disk_tier.h"
#include "offload/memory/host_shard_store.h"

namespace zero {

StateHomes state_homes_of(const Config& config, int rank, at::Device device) {
  StateHomes homes;
  std::shared_ptr<DiskTier> tier;
  DiskTierOptions options;
  options.directory = config.offload.nvme_dir;
  options.rank = rank;
  if (config.offload.optimizer == "nvme") {
    tier = DiskTier::create(options);
    if (rank == 0) log_info("optimizer states are on disk in ", options.directory, ", through ", tier->io_name());
    homes.optimizer = [tier](const std::string& name, std::int64_t elements, at::ScalarType type, bool has_master) {
      return tier->make_store(name, elements, type, has_master);
    };
  }
  if (config.offload.optimizer == "cpu" && !device.is_cpu())
    homes.optimizer = [](const std::string&, std::int64_t elements, at::ScalarType type, bool has_master) {
      return make_host_optimizer_store(elements, type, has_master);
    };
  if (config.offload.parameters == "cpu") {
    homes.weights = [device](const std::vector<std::int64_t>& bytes) { return make_host_shard_store(bytes, device); };
  } else if (config.offload.parameters == "nvme") {
    homes.weights = [tier, options](const std::vector<std::int64_t>& bytes) {
      return make_disk_shard_store(bytes, {options}, tier);
    };
  }
  return homes;
}

}  // namespace zero
