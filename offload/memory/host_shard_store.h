#pragma once
// A ShardStore in host memory.
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "offload/shard_store.h"

namespace zero {

/// All shards in host memory, booked as parameters. They are page-locked if they serve a GPU.
std::unique_ptr<ShardStore> make_host_shard_store(const std::vector<std::int64_t>& bytes,
                                                  c10::Device device = c10::kCPU);

}  // namespace zero
