#pragma once
// ShardHome: the place of a rank's part of one flat vector between uses: a tensor of any device, or a store.
#include <ATen/core/Tensor.h>

#include "offload/shard_store.h"

namespace zero {

/// Used by the rank's own thread.
class ShardHome {
 public:
  virtual ~ShardHome() = default;
  ShardHome(const ShardHome&) = delete;
  ShardHome& operator=(const ShardHome&) = delete;

  /// Starts to load it. A hint.
  virtual void fetch() {}
  /// All of it, flat, until release(). If the home is not a tensor, do not acquire it twice without a release.
  virtual at::Tensor acquire() = 0;
  /// `changed`: it was written to.
  virtual void release(bool changed) {}
  /// True if collectives of the device use a buffer for it, because it lies in other memory than theirs.
  virtual bool passes_buffer() const { return false; }
  /// True if a copy in flight may continue after release().
  virtual bool keeps_addresses() const { return true; }

 protected:
  ShardHome() = default;
};

class TensorHome final : public ShardHome {
 public:
  explicit TensorHome(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  at::Tensor acquire() override { return tensor_; }

 private:
  at::Tensor tensor_;
};

/// One shard of a store, which outlives this.
class StoredShard final : public ShardHome {
 public:
  StoredShard(ShardStore& store, int shard, at::ScalarType type, bool passes_buffer)
      : store_(store), shard_(shard), type_(type), passes_buffer_(passes_buffer) {}

  void fetch() override { store_.fetch(shard_); }
  at::Tensor acquire() override;
  void release(bool changed) override { store_.release(shard_, changed); }
  bool passes_buffer() const override { return passes_buffer_; }
  bool keeps_addresses() const override { return store_.keeps_addresses(); }

 private:
  ShardStore& store_;
  int shard_;
  at::ScalarType type_;
  bool passes_buffer_;
};

}  // namespace zero
