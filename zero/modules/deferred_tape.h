#pragma once
// DeferredTape: how a module's tensors get their values, written down while the module is built on Meta, where tensors have
// sizes and no memory. The values of one tensor are computed later, by the operations that they follow from.
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace c10 {
class OperatorHandle;
}

namespace zero {

/// A tensor of a tape, or one with values.
struct DeferredTensor {
  std::int64_t storage = -1;  // of the tape; -1: `constant`
  std::vector<std::int64_t> sizes = {}, strides = {};
  std::int64_t offset = 0;
  at::ScalarType type = at::kFloat;
  at::Tensor constant = {};
};

class DeferredTape : public std::enable_shared_from_this<DeferredTape> {
 public:
  DeferredTape();
  ~DeferredTape();
  DeferredTape(const DeferredTape&) = delete;
  DeferredTape& operator=(const DeferredTape&) = delete;

  /// While it lives, this thread's operations are written down, and tensors that are made without naming a device are on
  /// Meta. Afterwards an operation on one of them throws InputError. One inside of another writes to the outer one's tape.
  class Recording {
   public:
    Recording();
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;  // null: it is inside of another
  };

  /// Carries out the operation over the last values of the stack where it belongs to a tape. False: it does not.
  static bool call(const c10::OperatorHandle& operation, torch::jit::Stack* stack);

  /// The tape of a tensor whose values are still to come; null: it has none.
  static std::shared_ptr<DeferredTape> of(const at::Tensor& tensor);
  static DeferredTensor tensor_of(const at::Tensor& tensor);

  /// The tensor's values, in host memory. Random numbers follow from the seed and the place of their operation on the tape,
  /// whichever tensors are asked for. Holds what the tensor is computed from meanwhile.
  at::Tensor values(const DeferredTensor& tensor, std::uint32_t seed) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zero
