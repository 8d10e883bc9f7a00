#pragma once
// ShardHome: the place where a rank keeps its part of one flat vector between uses. That is a tensor on any device, or
// a store.
#include <ATen/core/Tensor.h>

#include "offload/shard_store.h"

namespace zero {

/// Only the rank's own thread uses it.
class ShardHome {
 public:
  virtual ~ShardHome() = default;
  ShardHome(const ShardHome&) = delete;
  ShardHome& operator=(const ShardHome&) = delete;

  /// Starts to load the part. This is only a hint.
  virtual void fetch() {}
  /// Returns the whole part as a flat tensor, valid until release(). If the home is not a TensorHome, do not acquire it
  /// twice without a release.
  virtual at::Tensor acquire() = 0;
  /// Ends the use. `changed` says whether the tensor was written to.
  virtual void release(bool changed) {}
  /// True if the device's collectives need a buffer, because the part lies in memory that they cannot use.
  virtual bool passes_buffer() const { return false; }
  /// True if a copy in flight may still use the memory after release().
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

/// One shard of a store. The store must outlive this object.
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
