#pragma once
// CollectiveMemory: the memory in which a backend wants the tensors of its collectives.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace zero {

/// The chunk size of large sums, for a backend that needs memory in addition to input and output. It holds this many
/// bytes that are sent but not yet summed.
inline constexpr std::int64_t sum_chunk_bytes = std::int64_t{64} << 20;

class CollectiveMemory {
 public:
  virtual ~CollectiveMemory() = default;

  /// A tensor [numel] on the backend's device, uninitialised. It comes from the reserved arena while that has room.
  virtual at::Tensor allocate(std::int64_t numel, at::ScalarType type) = 0;

  /// Call before the allocate() calls that need it. If a backend registers memory, all these blocks (bytes each) then
  /// come from one registered arena. Ranks allocate in the same order, so offsets are the same on all of them.
  /// `largest_sum`: bytes of the largest vector of a reduce_scatter or all_reduce, 0 for none. A second call makes
  /// another arena. The first one stays as long as its tensors do. Collective.
  virtual void reserve(const std::vector<std::int64_t>& blocks, std::int64_t largest_sum) = 0;

  /// Bytes on the device that LibTorch's allocators do not count.
  virtual std::int64_t own_device_bytes() const = 0;
};

/// For backends that register nothing: LibTorch's memory of a device.
class TorchMemory final : public CollectiveMemory {
 public:
  explicit TorchMemory(at::Device device = at::kCPU) : device_(device) {}

  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override;
  void reserve(const std::vector<std::int64_t>&, std::int64_t) override {}
  std::int64_t own_device_bytes() const override { return 0; }

 private:
  at::Device device_;
};

}  // namespace zero
