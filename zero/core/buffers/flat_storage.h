#pragma once
// FlatStorage: a flat tensor whose memory comes and goes while views of it stay alive.
//
// This is the one unsafe trick of the project, kept in this file. A module's parameters, and all that autograd saved of
// them, are views of one StorageImpl. Taking that StorageImpl's memory away empties all of them at once, and giving it
// memory again brings all of them back. Nothing is copied and no tensor object is replaced. Autograd's version counters
// do not change, because raw collectives write the memory, never a variable.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace zero {

class FlatStorage {
 public:
  FlatStorage() = default;

  /// A 1-D tensor of `numel` elements without memory.
  FlatStorage(std::int64_t numel, at::ScalarType type, at::Device device);

  /// The flat tensor. While it is detached, never read it. Make views while memory is attached: LibTorch checks their
  /// bounds against it.
  const at::Tensor& tensor() const { return tensor_; }
  bool attached() const { return attached_; }
  std::int64_t bytes() const { return bytes_; }

  /// Marks the storage, so that owner_of() finds `owner` in every tensor that shares it, with memory and without. While
  /// it has no memory, LibTorch refuses raw pointers to it (from 2.13 on). Call it before memory is lent for the first
  /// time.
  void watch(const void* owner);
  /// Returns the watcher of the tensor's storage, or null.
  static const void* owner_of(const at::Tensor& tensor);

  /// Lends memory of at least bytes() bytes. The caller owns it and keeps it until detach().
  void attach(void* memory);
  void detach();

 private:
  at::Tensor tensor_;
  void point_to(void* memory, std::int64_t bytes);

  std::int64_t bytes_ = 0;
  const void* owner_ = nullptr;
  bool attached_ = false;
};

/// Gives the tensor object the data of another tensor from now on (set_data()). One of the two may be on Meta, which
/// set_data() itself refuses.
void point_at(const at::Tensor& tensor, const at::Tensor& data);

}  // namespace zero
