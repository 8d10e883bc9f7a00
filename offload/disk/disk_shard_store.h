#pragma once
// A ShardStore in a file, with only a few shards in memory at a time.
#include <cstdint>
#include <memory>
#include <vector>

#include "offload/disk/disk_tier.h"
#include "offload/shard_store.h"

namespace zero {

struct DiskShardOptions {
  DiskTierOptions tier;  // only directory, rank, io and checksums are used
  int buffers = 2;       // shards in memory at a time, each as large as the largest
};

/// The size in bytes of the store's file, and of its buffers in memory.
struct DiskShardBytes {
  std::int64_t file = 0, memory = 0;
};
DiskShardBytes disk_shard_bytes(const std::vector<std::int64_t>& bytes, const DiskShardOptions& options);

/// Makes a store of shards in one file, at most `buffers` of them in memory. A released shard stays in its buffer until
/// another shard needs the buffer. The store uses the directory of `tier`. If `tier` is null, it opens its own. Throws
/// InternalError if more shards are held than there are buffers, and Error if the disk fails.
std::unique_ptr<ShardStore> make_disk_shard_store(const std::vector<std::int64_t>& bytes,
                                                  const DiskShardOptions& options,
                                                  std::shared_ptr<DiskTier> tier = nullptr);

}  // namespace zero
