#pragma once
// CollectiveMemory: the memory in which a backend's collectives run fastest.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace zero {

/// The chunk size of large sums, for a backend that needs memory besides input and output. The backend holds this many
/// bytes that have been sent but not yet summed.
inline constexpr std::int64_t sum_chunk_bytes = std::int64_t{64} << 20;

class CollectiveMemory {
 public:
  virtual ~CollectiveMemory() = default;

  /// A tensor [numel] on the backend's device, uninitialised. It comes from the reserved arena while the arena has
  /// room.
  virtual at::Tensor allocate(std::int64_t numel, at::ScalarType type) = 0;

  /// Reserves memory for later allocate() calls: `blocks` lists their sizes in bytes. A backend that registers memory
  /// then takes all of them from one registered arena. Ranks must allocate in the same order, so that offsets agree.
  /// `largest_sum` is the size in bytes of the largest vector of a reduce_scatter or all_reduce, or 0. A second call
  /// makes another arena. An arena lives as long as its tensors. Collective.
  virtual void reserve(const std::vector<std::int64_t>& blocks, std::int64_t largest_sum) = 0;

  /// The device memory in bytes that LibTorch's allocators do not count.
  virtual std::int64_t own_device_bytes() const = 0;
};

/// LibTorch's memory on a device, for backends that register none.
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
