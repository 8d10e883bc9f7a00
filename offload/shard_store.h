#pragma once
// ShardStore: the place of a rank's parameter shards while their unit is not in use, one shard per parameter group.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero {

/// Used by the rank's own thread. Bytes start as zeros.
class ShardStore {
 public:
  virtual ~ShardStore() = default;
  ShardStore(const ShardStore&) = delete;
  ShardStore& operator=(const ShardStore&) = delete;

  int shards() const { return static_cast<int>(bytes_.size()); }
  std::int64_t bytes(int shard) const { return bytes_.at(static_cast<std::size_t>(shard)); }

  /// Starts to load a shard. A hint, which does nothing if there is no room for it yet.
  virtual void fetch(int shard) {}
  /// The shard's bytes, 64-byte aligned, until release(). Waits for them. Do not acquire a shard twice without a
  /// release.
  virtual void* acquire(int shard) = 0;
  /// `changed`: the bytes were written to and must be kept.
  virtual void release(int shard, bool changed) = 0;
  /// True if a shard's bytes stay in place after release(), so that a copy in flight may continue.
  virtual bool keeps_addresses() const { return false; }

 protected:
  explicit ShardStore(std::vector<std::int64_t> bytes) : bytes_(std::move(bytes)) {}

 private:
  std::vector<std::int64_t> bytes_;
};

}  // namespace zero
