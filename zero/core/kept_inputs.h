#pragma once
// KeptInputs: keeps one pass's inputs of recomputed units in host memory between forward and backward (activation
// offload). The inputs are the checkpoints of Chen et al. 2016, moved to the host as in ZeRO-Infinity (Rajbhandari et
// al. 2021). Copies run on a stream of their own. At most two inputs are being copied out at a time, and backward
// fetches two units ahead.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "comm/stream.h"

namespace zero {

/// Page-locked buffers in host memory, which passes take and give back. For Meta tensors, buffers have no memory and
/// are only counted.
class HostBuffers {
 public:
  explicit HostBuffers(at::Device device) : device_(device) {}

  /// At least [bytes] of type byte. Replaces free buffers that are too small. Inputs of many lengths therefore take no
  /// more memory than equally many inputs of the longest length.
  at::Tensor take(std::int64_t bytes);
  /// `copied`: the last copy into the buffer or out of it.
  void give_back(at::Tensor buffer, Event copied);
  /// Bytes of all buffers, in use or not.
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Free {
    at::Tensor buffer;
    Event copied;
  };
  at::Device device_;
  std::multimap<std::int64_t, Free> free_;  // by bytes
  std::int64_t bytes_ = 0;
};

/// Buffers and stream of the engine, shared by its passes.
struct InputHome {
  explicit InputHome(at::Device device) : buffers(device), copies(device) {}

  HostBuffers buffers;
  SideStream copies;  // a single stream, so that a buffer is read before it is rewritten
};

class KeptInputs {
 public:
  /// `units`: the chain's number of units. The home must outlive this object.
  KeptInputs(InputHome& home, int units) : home_(home), inputs_(std::size_t(units)) {}
  /// Gives back the buffers, including those of inputs that were never taken.
  ~KeptInputs();
  KeptInputs(const KeptInputs&) = delete;
  KeptInputs& operator=(const KeptInputs&) = delete;

  /// Starts to copy a unit's input to the host. The input's device memory is freed after the copy.
  void keep(int unit, const at::Tensor& x);
  /// Starts to copy an input back. Does nothing for a unit without a kept input, or if the copy has already started.
  void fetch(int unit);
  /// Returns the input, on the device. The current stream waits for the copy.
  at::Tensor take(int unit);

 private:
  struct Input {
    at::Tensor host;     // bytes; undefined: no input is kept
    at::Tensor leaving;  // until its copy is done
    at::Tensor arriving;
    Event copied;
    std::vector<std::int64_t> shape;
    at::TensorOptions options;
  };
  void let_go(std::size_t most_leaving);

  InputHome& home_;
  std::vector<Input> inputs_;
  std::deque<int> leaving_;  // in the order of their copies
};

}  // namespace zero
