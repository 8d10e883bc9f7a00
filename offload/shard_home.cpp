#include "offload/shard_home.h"

#include <ATen/ATen.h>

namespace zero {

at::Tensor StoredShard::acquire() {
  return at::from_blob(store_.acquire(shard_), {store_.bytes(shard_) / std::int64_t(c10::elementSize(type_))},
                       at::TensorOptions().dtype(type_));
}

}  // namespace zero
