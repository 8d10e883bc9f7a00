#include "zero/held_tensor.h"

#include <ATen/ATen.h>

namespace zero {

HeldTensor::HeldTensor(ShardStore& store, int shard, at::ScalarType type, bool changes) : store_(&store), shard_(shard), changes_(changes) {
  tensor_ = at::from_blob(store.acquire(shard), {store.bytes(shard) / std::int64_t(c10::elementSize(type))}, at::TensorOptions().dtype(type));
}

HeldTensor::~HeldTensor() {
  if (store_) store_->release(shard_, changes_);
}

}  // namespace zero
