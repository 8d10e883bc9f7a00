#pragma once
// ShardLease: holds a shard in memory while this object lives, wherever the shard lies otherwise.
#include <ATen/core/Tensor.h>

#include <exception>

#include "offload/shard_home.h"

namespace zero {

class ShardLease {
 public:
  /// Brings the shard in now and gives it back at the end. `changes`: writes to it are kept.
  ShardLease(ShardHome& home, bool changes) : home_(home), changes_(changes), tensor_(home.acquire()) {}
  /// Throws if the home fails, so that nothing goes on without the shard. While another exception propagates, it logs
  /// the failure instead.
  ~ShardLease() noexcept(false);
  ShardLease(const ShardLease&) = delete;
  ShardLease& operator=(const ShardLease&) = delete;

  const at::Tensor& tensor() const { return tensor_; }

 private:
  ShardHome& home_;
  bool changes_;
  at::Tensor tensor_;
  int exceptions_ = std::uncaught_exceptions();  // that propagated when the tensor was brought in
};

}  // namespace zero
