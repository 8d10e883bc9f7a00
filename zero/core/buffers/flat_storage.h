#pragma once
// FlatStorage: a flat tensor whose memory can be detached and reattached while views of it stay alive.
//
// This is the project's only unsafe trick, and it stays in this file. A module's parameters, and the tensors that
// autograd saved of them, are views of one StorageImpl. Detaching that StorageImpl's memory empties all of them at
// once, and attaching memory restores all of them. Nothing is copied and no tensor object is replaced. Autograd's
// version counters do not change, because collectives write the raw memory and not a variable.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace zero {

class FlatStorage {
 public:
  FlatStorage() = default;

  /// A 1-D tensor of `numel` elements without memory.
  FlatStorage(std::int64_t numel, at::ScalarType type, at::Device device);

  /// The flat tensor. Never read it while memory is detached. Make views while memory is attached, since LibTorch
  /// checks their bounds against it.
  const at::Tensor& tensor() const { return tensor_; }
  bool attached() const { return attached_; }
  std::int64_t bytes() const { return bytes_; }

  /// Marks the storage, so that owner_of() returns `owner` for every tensor that shares it, with or without memory.
  /// While it has no memory, LibTorch (2.13 and later) throws on requests for raw pointers to it. Call it before memory
  /// is attached for the first time.
  void watch(const void* owner);
  /// Returns the owner that watch() recorded for the tensor's storage, or null.
  static const void* owner_of(const at::Tensor& tensor);

  /// Attaches at least bytes() bytes of memory. The caller owns the memory and must keep it until detach().
  void attach(void* memory);
  void detach();

 private:
  at::Tensor tensor_;
  void point_to(void* memory, std::int64_t bytes);

  std::int64_t bytes_ = 0;
  const void* owner_ = nullptr;
  bool attached_ = false;
};

/// Makes the tensor object use the data of another tensor (set_data()). One of the two may be on Meta, which set_data()
/// alone does not allow.
void point_at(const at::Tensor& tensor, const at::Tensor& data);

}  // namespace zero
