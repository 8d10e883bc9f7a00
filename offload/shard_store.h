#pragma once
// ShardStore: where the parameter shards of a rank live while their unit is not at work, one shard per unit.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "offload/disk_tier.h"

namespace zero {

/// Used by the rank's own thread. Bytes start as zeros.
class ShardStore {
 public:
  virtual ~ShardStore() = default;
  ShardStore(const ShardStore&) = delete;
  ShardStore& operator=(const ShardStore&) = delete;

  int shards() const { return static_cast<int>(bytes_.size()); }
  std::int64_t bytes(int shard) const { return bytes_.at(static_cast<std::size_t>(shard)); }

  /// Begins to bring a shard in; a hint, which does nothing where there is no room for it yet.
  virtual void fetch(int shard) {}
  /// The shard's bytes, 64-byte aligned, until release(). Waits for them. Not twice without a release between.
  virtual void* acquire(int shard) = 0;
  /// `changed`: the bytes were written to and are to be kept.
  virtual void release(int shard, bool changed) = 0;
  /// Whether a shard's bytes stay where they are after release(), so that a copy under way may go on.
  virtual bool keeps_addresses() const { return false; }

 protected:
  explicit ShardStore(std::vector<std::int64_t> bytes) : bytes_(std::move(bytes)) {}

 private:
  std::vector<std::int64_t> bytes_;
};

/// All shards in host memory, booked as parameters; page-locked when they are for a GPU.
std::unique_ptr<ShardStore> make_host_shard_store(const std::vector<std::int64_t>& bytes, c10::Device device = c10::kCPU);

struct DiskShardOptions {
  DiskTierOptions tier;       // directory, rank, io, checksums; the rest is not used
  int slots = 2;              // shards in memory at a time, each as large as the largest
};

/// Shards in one file; `slots` of them in memory. A released shard stays in its slot until another one needs it. Holding
/// more shards than slots is an InternalError; a fault of the disk an Error. `directory` is that of the tier, if there is
/// one; else the store opens its own.
std::unique_ptr<ShardStore> make_disk_shard_store(const std::vector<std::int64_t>& bytes, const DiskShardOptions& options,
                                                  std::shared_ptr<DiskTier> tier = nullptr);

}  // namespace zero
