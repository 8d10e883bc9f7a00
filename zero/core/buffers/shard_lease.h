#pragma once
// ShardLease: holds a shard in memory while this object lives, wherever the shard is kept otherwise.
#include <ATen/core/Tensor.h>

#include <exception>

#include "offload/shard_home.h"

namespace zero {

class ShardLease {
 public:
  /// Brings the shard into memory; the destructor releases it. `changes`: writes to the shard are kept.
  ShardLease(ShardHome& home, bool changes) : home_(home), changes_(changes), tensor_(home.acquire()) {}
  /// Throws if the home fails, so that nothing continues with a lost shard. While another exception propagates, logs
  /// the failure instead.
  ~ShardLease() noexcept(false);
  ShardLease(const ShardLease&) = delete;
  ShardLease& operator=(const ShardLease&) = delete;

  const at::Tensor& tensor() const { return tensor_; }

 private:
  ShardHome& home_;
  bool changes_;
  at::Tensor tensor_;
  int exceptions_ = std::uncaught_exceptions();  // number that were propagating when the tensor was acquired
};

}  // namespace zero
