#pragma once
// HostUpdate: copies gradients to the host and new weights back (ZeRO-Offload, Ren et al. 2021). It serves weights that
// are on a device while their states are on the host. The gradient is sent as soon as it is summed, while backward
// continues. The new weights are copied while the next group is updated. If states are on the same device as the
// weights, nothing is copied.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "comm/stream.h"

namespace zero {

class HostUpdate {
 public:
  struct Shape {
    std::int64_t numel = 0;                                     // of the own part
    std::optional<at::ScalarType> gradient = {}, weights = {};  // none: already where the states are

    std::int64_t bytes() const;
  };
  /// Allocates page-locked buffers of this shape.
  HostUpdate(const Shape& shape, at::Device device);

  /// Starts to send the gradient, [numel] on the device, in the current stream. The gradient must not change until
  /// begin().
  void send(const at::Tensor& gradient);

  /// Sets the weights from which the first update starts, if they are their own master. [numel] on the device.
  void take_weights(const at::Tensor& weights);

  /// Begins an update: waits for the gradient. Returns the copy of the weights that is in the states' memory. `own`:
  /// the weights on the device.
  const at::Tensor& begin(const at::Tensor& own) const;
  /// Ends an update that wrote weights: starts to copy them to `own`, the weights on the device, in the current stream.
  void finish(const at::Tensor& own) const;

  /// Returns the copy of the gradient that an update reads. `own`: the gradient on the device.
  const at::Tensor& gradient(const at::Tensor& own) const { return gradient_.defined() ? gradient_ : own; }

 private:
  at::Tensor gradient_, weights_;  // undefined: nothing is copied
  Event sent_;
};

}  // namespace zero
