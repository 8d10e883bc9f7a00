#pragma once
// Makes a ShardStore in host memory.
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "offload/shard_store.h"

namespace zero {

/// Keeps all shards in host memory, counted as parameters. The memory is page-locked if `device` is a GPU.
std::unique_ptr<ShardStore> make_host_shard_store(const std::vector<std::int64_t>& bytes,
                                                  c10::Device device = c10::kCPU);

}  // namespace zero
