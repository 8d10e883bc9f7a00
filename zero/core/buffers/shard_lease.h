#pragma once
// ShardLease: the hold on a shard, in memory while this object lives, wherever it lives otherwise.
#include <ATen/core/Tensor.h>

#include <exception>

#include "offload/shard_home.h"

namespace zero {

class ShardLease {
 public:
  /// Brought in now and given back at the end. `changes`: what is written to it is kept.
  ShardLease(ShardHome& home, bool changes) : home_(home), changes_(changes), tensor_(home.acquire()) {}
  /// Throws what the home could not do, so that nothing goes on without it; while another exception is on its way that
  /// one goes first, and this one is logged.
  ~ShardLease() noexcept(false);
  ShardLease(const ShardLease&) = delete;
  ShardLease& operator=(const ShardLease&) = delete;

  const at::Tensor& tensor() const { return tensor_; }

 private:
  ShardHome& home_;
  bool changes_;
  at::Tensor tensor_;
  int exceptions_ = std::uncaught_exceptions();  // on their way when the tensor was brought in
};

}  // namespace zero
