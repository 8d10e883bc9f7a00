#pragma once
// ShardHome: where what a rank keeps of one flat vector lives between uses: in a tensor of any device, or in a store.
#include <ATen/core/Tensor.h>

#include "offload/shard_store.h"

namespace zero {

/// Used by the rank's own thread.
class ShardHome {
 public:
  virtual ~ShardHome() = default;
  ShardHome(const ShardHome&) = delete;
  ShardHome& operator=(const ShardHome&) = delete;

  /// Begins to bring it in; a hint.
  virtual void fetch() {}
  /// All of it, flat, until release(). Not twice without a release between where the home is no tensor.
  virtual at::Tensor acquire() = 0;
  /// `changed`: it was written to.
  virtual void release(bool changed) {}
  /// Collectives of the device take it through a buffer there: it is in other memory than they work on.
  virtual bool passes_buffer() const { return false; }
  /// Where it passes a buffer: whether the copy may go on after release().
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
