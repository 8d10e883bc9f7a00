#pragma once
// KeptInputs: the inputs of recomputed units of one pass, in host memory between forward and backward (activation
// offload: Chen et al. 2016's checkpoints, moved out as in ZeRO-Infinity, Rajbhandari et al. 2021). Copies run on a
// stream of their own. Two inputs at most are on their way out, and backward fetches two units ahead.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "comm/stream.h"

namespace zero {

/// Page-locked buffers in host memory, which passes take and give back. For Meta tensors buffers that only count.
class HostBuffers {
 public:
  explicit HostBuffers(at::Device device) : device_(device) {}

  /// At least [bytes] of type byte. Replaces free buffers that are too small, so that inputs of many lengths take no
  /// more than as many buffers of the longest.
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

/// The engine's part, shared by its passes.
struct InputHome {
  explicit InputHome(at::Device device) : buffers(device), copies(device) {}

  HostBuffers buffers;
  SideStream copies;  // one, so that a buffer is read before it is written again
};

class KeptInputs {
 public:
  /// `units`: of the chain. The home outlives it.
  KeptInputs(InputHome& home, int units) : home_(home), inputs_(std::size_t(units)) {}
  /// Gives back the buffers, also of inputs that nobody took.
  ~KeptInputs();
  KeptInputs(const KeptInputs&) = delete;
  KeptInputs& operator=(const KeptInputs&) = delete;

  /// Starts to copy a unit's input out. Its memory on the device is free once the copy is done.
  void keep(int unit, const at::Tensor& x);
  /// Starts to bring an input back. Does nothing for a unit that has none here, or has it on its way.
  void fetch(int unit);
  /// The input, on the device. The current stream waits for it.
  at::Tensor take(int unit);

 private:
  struct Input {
    at::Tensor host;     // bytes; undefined: none is kept
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
