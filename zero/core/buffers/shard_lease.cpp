#include "zero/core/buffers/shard_lease.h"

#include <ATen/ATen.h>

#include <string>

#include "base/log.h"

namespace zero {

ShardLease::ShardLease(ShardStore& store, int shard, at::ScalarType type, bool changes)
    : store_(&store), shard_(shard), changes_(changes) {
  tensor_ = at::from_blob(store.acquire(shard), {store.bytes(shard) / std::int64_t(c10::elementSize(type))},
                          at::TensorOptions().dtype(type));
}

ShardLease::~ShardLease() noexcept(false) {
  if (!store_) return;
  try {
    store_->release(shard_, changes_);
  } catch (const std::exception& error) {
    if (std::uncaught_exceptions() == exceptions_) throw;
    log_error(std::string("beside what went wrong before: ") + error.what());
  }
}

}  // namespace zero
