#include "offload/memory/host_shard_store.h"

#include <ATen/ATen.h>

#include "offload/memory/host_tensor.h"

namespace zero {
namespace {

class HostShardStore final : public ShardStore {
 public:
  HostShardStore(const std::vector<std::int64_t>& bytes, c10::Device device) : ShardStore(bytes) {
    const CategoryScope scope(MemoryCategory::parameters);
    for (const std::int64_t size : bytes)
      data_.push_back(device.is_cpu() ? at::zeros({size}, at::kByte)
                                      : host_tensor(size, at::kByte, {MemoryCategory::parameters, device}));
  }
  void* acquire(int shard) override { return data_.at(static_cast<std::size_t>(shard)).data_ptr(); }
  void release(int, bool) override {}
  bool keeps_addresses() const override { return true; }

 private:
  std::vector<at::Tensor> data_;
};

}  // namespace

std::unique_ptr<ShardStore> make_host_shard_store(const std::vector<std::int64_t>& bytes, c10::Device device) {
  return std::make_unique<HostShardStore>(bytes, device);
}

}  // namespace zero
