#include "offload/shard_store.h"

#include <ATen/ATen.h>

#include "comm/error.h"

namespace zero {
namespace {

class HostShardStore final : public ShardStore {
 public:
  explicit HostShardStore(const std::vector<std::int64_t>& bytes) : ShardStore(bytes) {
    const MemoryScope scope(MemoryCategory::parameters);
    for (const std::int64_t size : bytes) data_.push_back(at::zeros({size}, at::kByte));
  }
  void* acquire(int shard) override { return data_.at(static_cast<std::size_t>(shard)).data_ptr(); }
  void release(int, bool) override {}

 private:
  std::vector<at::Tensor> data_;
};

}  // namespace

std::unique_ptr<ShardStore> make_host_shard_store(const std::vector<std::int64_t>& bytes) {
  return std::make_unique<HostShardStore>(bytes);
}

}  // namespace zero
