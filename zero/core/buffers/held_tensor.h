#pragma once
// HeldTensor: a flat tensor that is in memory while this object lives, wherever it lives otherwise.
#include <ATen/core/Tensor.h>

#include <exception>

#include "offload/shard_store.h"

namespace zero {

class HeldTensor {
 public:
  /// One that is always in memory.
  explicit HeldTensor(at::Tensor tensor) : tensor_(std::move(tensor)) {}

  /// A shard of a store, brought in now and given back at the end; `changes`: what is written to it is kept.
  HeldTensor(ShardStore& store, int shard, at::ScalarType type, bool changes);
  /// Throws what the store could not do, so that nothing goes on without it; while another exception is on its way that
  /// one goes first, and this one is logged.
  ~HeldTensor() noexcept(false);
  HeldTensor(const HeldTensor&) = delete;
  HeldTensor& operator=(const HeldTensor&) = delete;

  const at::Tensor& tensor() const { return tensor_; }

 private:
  at::Tensor tensor_;
  ShardStore* store_ = nullptr;
  int shard_ = 0;
  bool changes_ = false;
  int exceptions_ = std::uncaught_exceptions();  // on their way when the tensor was brought in
};

}  // namespace zero
