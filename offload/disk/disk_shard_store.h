#pragma once
// A ShardStore in a file. A few shards are in memory at a time.
#include <cstdint>
#include <memory>
#include <vector>

#include "offload/disk/disk_tier.h"
#include "offload/shard_store.h"

namespace zero {

struct DiskShardOptions {
  DiskTierOptions tier;  // directory, rank, io, checksums; the rest is not used
  int buffers = 2;       // shards in memory at a time, each as large as the largest
};

/// Bytes of the store's file, and of its buffers in memory.
struct DiskShardBytes {
  std::int64_t file = 0, memory = 0;
};
DiskShardBytes disk_shard_bytes(const std::vector<std::int64_t>& bytes, const DiskShardOptions& options);

/// Shards in one file, with `buffers` of them in memory. A released shard stays in its buffer until another one needs
/// it. Holding more shards than buffers is an InternalError, a fault of the disk an Error. `directory` is that of the
/// tier; null: the store opens its own.
std::unique_ptr<ShardStore> make_disk_shard_store(const std::vector<std::int64_t>& bytes,
                                                  const DiskShardOptions& options,
                                                  std::shared_ptr<DiskTier> tier = nullptr);

}  // namespace zero
