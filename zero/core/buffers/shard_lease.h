#pragma once
// ShardLease: a flat tensor that is in memory while this object lives, wherever it lives otherwise.
#include <ATen/core/Tensor.h>

#include <exception>

#include "offload/shard_store.h"

namespace zero {

class ShardLease {
 public:
  /// One that is always in memory.
  explicit ShardLease(at::Tensor tensor) : tensor_(std::move(tensor)) {}

  /// A shard of a store, brought in now and given back at the end; `changes`: what is written to it is kept.
  ShardLease(ShardStore& store, int shard, at::ScalarType type, bool changes);
  /// Throws what the store could not do, so that nothing goes on without it; while another exception is on its way that
  /// one goes first, and this one is logged.
  ~ShardLease() noexcept(false);
  ShardLease(const ShardLease&) = delete;
  ShardLease& operator=(const ShardLease&) = delete;

  const at::Tensor& tensor() const { return tensor_; }

 private:
  at::Tensor tensor_;
  ShardStore* store_ = nullptr;
  int shard_ = 0;
  bool changes_ = false;
  int exceptions_ = std::uncaught_exceptions();  // on their way when the tensor was brought in
};

}  // namespace zero
