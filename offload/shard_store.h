#pragma once
// ShardStore: holds a rank's parameter shards while their unit is not in use, one shard per parameter group.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero {

/// Only the rank's own thread uses it. All bytes are zero at first.
class ShardStore {
 public:
  virtual ~ShardStore() = default;
  ShardStore(const ShardStore&) = delete;
  ShardStore& operator=(const ShardStore&) = delete;

  int shards() const { return static_cast<int>(bytes_.size()); }
  std::int64_t bytes(int shard) const { return bytes_.at(static_cast<std::size_t>(shard)); }

  /// Starts to load a shard, or does nothing if there is no room for it yet. This is only a hint.
  virtual void fetch(int shard) {}
  /// Waits for the shard's bytes and returns them, 64-byte aligned and valid until release(). Do not acquire a shard
  /// twice without a release.
  virtual void* acquire(int shard) = 0;
  /// Ends the use. `changed` says whether the bytes were written to, so that the change must be kept.
  virtual void release(int shard, bool changed) = 0;
  /// True if a shard's bytes keep their address after release(), so that a copy in flight may continue.
  virtual bool keeps_addresses() const { return false; }

 protected:
  explicit ShardStore(std::vector<std::int64_t> bytes) : bytes_(std::move(bytes)) {}

 private:
  std::vector<std::int64_t> bytes_;
};

}  // namespace zero
