#pragma once
// HeldTensor: a flat tensor that is in memory while this object lives, wherever it lives otherwise.
#include <ATen/core/Tensor.h>

#include "offload/shard_store.h"

namespace zero {

class HeldTensor {
 public:
  /// One that is always in memory.
  explicit HeldTensor(at::Tensor tensor) : tensor_(std::move(tensor)) {}

  /// A shard of a store, brought in now and given back at the end; `changes`: what is written to it is kept.
  HeldTensor(ShardStore& store, int shard, at::ScalarType type, bool changes);
  ~HeldTensor();
  HeldTensor(const HeldTensor&) = delete;
  HeldTensor& operator=(const HeldTensor&) = delete;

  const at::Tensor& tensor() const { return tensor_; }

 private:
  at::Tensor tensor_;
  ShardStore* store_ = nullptr;
  int shard_ = 0;
  bool changes_ = false;
};

}  // namespace zero
