#pragma once
// HostUpdate: the update of weights that live on a device by states that live on the host (ZeRO-Offload, Ren et al.
// 2021). The gradient is sent as soon as it is summed, beside the rest of backward; the new weights travel while the
// next group is updated. Where states live beside the weights it lets everything through as it is.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "comm/stream.h"

namespace zero {

class HostUpdate {
 public:
  struct Shape {
    std::int64_t numel = 0;                                     // of the own part
    std::optional<at::ScalarType> gradient = {}, weights = {};  // none: they live where the states do

    std::int64_t bytes() const;
  };
  /// Buffers of the shape in page-locked memory.
  HostUpdate(const Shape& shape, at::Device device);

  /// The current stream begins to send the gradient, [numel] on the device, which stays as it is until update().
  void send(const at::Tensor& gradient);

  /// For weights that are their own master: what the first update starts from. [numel] on the device.
  void take_weights(const at::Tensor& weights);

  /// Waits for the gradient, and runs the update on the weights where the states are. Where it `writes` these, begins to
  /// bring them to `weights` in the current stream.
  void update(const at::Tensor& weights, bool writes, const std::function<void(const at::Tensor& weights)>& run);

  /// Where an update finds the gradient, given the device's own.
  const at::Tensor& gradient(const at::Tensor& own) const { return gradient_.defined() ? gradient_ : own; }

 private:
  at::Tensor gradient_, weights_;  // undefined: nothing travels
  Event sent_;
};

}  // namespace zero
