#pragma once
// HostUpdate: the way to states on the host and back, for weights on a device (ZeRO-Offload, Ren et al. 2021). The
// gradient is sent as soon as it is summed, while backward goes on. The new weights travel while the next group is
// updated. Where states live next to the weights, nothing travels, and tensors are passed on as they are.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "comm/stream.h"

namespace zero {

class HostUpdate {
 public:
  struct Shape {
    std::int64_t numel = 0;                                     // of the own part
    std::optional<at::ScalarType> gradient = {}, weights = {};  // none: it lives where the states do

    std::int64_t bytes() const;
  };
  /// Buffers of the shape in page-locked memory.
  HostUpdate(const Shape& shape, at::Device device);

  /// The current stream begins to send the gradient, [numel] on the device. It must stay as it is until begin().
  void send(const at::Tensor& gradient);

  /// Sets the weights that the first update starts from, if they are their own master. [numel] on the device.
  void take_weights(const at::Tensor& weights);

  /// Begins an update: waits for the gradient. Returns the weights where the states are, given the device's own.
  const at::Tensor& begin(const at::Tensor& own) const;
  /// Ends an update that wrote weights: the current stream begins to bring them to the device's own.
  void finish(const at::Tensor& own) const;

  /// The gradient where an update reads it, given the device's own.
  const at::Tensor& gradient(const at::Tensor& own) const { return gradient_.defined() ? gradient_ : own; }

 private:
  at::Tensor gradient_, weights_;  // undefined: nothing travels
  Event sent_;
};

}  // namespace zero
