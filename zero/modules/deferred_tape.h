#pragma once
// DeferredTape: records how a module's tensors get their values while the module is built on Meta, where tensors have
// no memory. Later it computes a tensor's values by replaying the operations on which they depend.
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace c10 {
class OperatorHandle;
}

namespace zero {

/// A tensor on a tape, or one with values.
struct DeferredTensor {
  std::int64_t storage = -1;  // index on the tape; -1: `constant`
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

  /// While it lives, records this thread's operations. Tensors made without a device are put on Meta. Using such a
  /// tensor afterwards throws InputError. A nested recording writes to the outer recording's tape.
  class Recording {
   public:
    Recording();
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;  // null: nested
  };

  /// Runs the operation on the last values of the stack if it belongs to a tape; otherwise returns false.
  static bool call(const c10::OperatorHandle& operation, torch::jit::Stack* stack);

  /// The tape of a tensor whose values are not computed yet; null if none.
  static std::shared_ptr<DeferredTape> of(const at::Tensor& tensor);
  static DeferredTensor tensor_of(const at::Tensor& tensor);

  /// Computes the tensor's values, in host memory. Random numbers depend on the seed and the operation's index on the
  /// tape only, not on which tensors are requested. While it runs, holds the tensors that the computation needs.
  at::Tensor values(const DeferredTensor& tensor, std::uint32_t seed) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zero
