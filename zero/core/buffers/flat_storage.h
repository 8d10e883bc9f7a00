#pragma once
// FlatStorage: a flat tensor whose memory comes and goes while views of it stay alive.
//
// The one unsafe trick of the project, kept in this file. A module's parameters and all that autograd saved of them are
// views that share one StorageImpl. Taking the memory away from that StorageImpl, and giving it other memory later,
// brings all of them back to life at once; nothing is copied and no tensor object is replaced. Autograd's version
// counters do not notice, since the memory is written through raw collectives and never through a variable.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace zero {

class FlatStorage {
 public:
  FlatStorage() = default;

  /// A 1-D tensor of `numel` elements without memory.
  FlatStorage(std::int64_t numel, at::ScalarType type, at::Device device);

  /// The flat tensor. Only views may be made of it while it is detached: never read it then. Views must be made while
  /// memory is attached, since LibTorch checks their bounds against it.
  const at::Tensor& tensor() const { return tensor_; }
  bool attached() const { return attached_; }
  std::int64_t bytes() const { return bytes_; }

  /// Marks the storage: owner_of() finds `owner` in whatever shares it, with memory and without; raw pointers to it are
  /// refused while it has none (with LibTorch from 2.13 on). Before memory is lent for the first time.
  void watch(const void* owner);
  /// Who watches the tensor's storage; null: nobody.
  static const void* owner_of(const at::Tensor& tensor);

  /// Lends memory of at least bytes(); it stays the property of the caller, who keeps it until detach().
  void attach(void* memory);
  void detach();

 private:
  at::Tensor tensor_;
  void point_to(void* memory, std::int64_t bytes);

  std::int64_t bytes_ = 0;
  const void* owner_ = nullptr;
  bool attached_ = false;
};

/// The tensor object has the data of another one from now on (set_data()). One may be on Meta, which LibTorch refuses.
void point_at(const at::Tensor& tensor, const at::Tensor& data);

}  // namespace zero
