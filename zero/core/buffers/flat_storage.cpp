#include "zero/core/buffers/flat_storage.h"

#include <ATen/ATen.h>
#include <c10/core/StorageImpl.h>

#include "base/error.h"
#include "base/refusals.h"

namespace zero {
namespace {

void free_nothing(void*) {}

// Only newer LibTorch can make a storage allow raw pointers again after it was made to throw on them.
template <typename Storage>
void refuse_raw_pointers(Storage& storage, bool refuse) {
  if constexpr (requires { storage.clear_data_ptr_access_error_msg_(); }) {
    if (refuse)
      storage.release_data_and_set_meta_custom_data_ptr_error_msg_(
          std::string(no_raw_pointer) +
          ", whose memory comes with the operations that use it at stage 3, and goes again. Give operations or "
          "weight.clone() in its place; model.save() is torch::save() of a sharded model");
    else
      storage.clear_data_ptr_access_error_msg_();
  }
}

}  // namespace

FlatStorage::FlatStorage(std::int64_t numel, at::ScalarType type, at::Device device)
    : bytes_(numel * static_cast<std::int64_t>(c10::elementSize(type))) {
  tensor_ = at::empty({0}, at::TensorOptions().dtype(type).device(device));
  tensor_.unsafeGetTensorImpl()->set_sizes_contiguous({numel});
}

void FlatStorage::watch(const void* owner) {
  owner_ = owner;
  point_to(attached_ ? tensor_.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get() : nullptr,
           attached_ ? bytes_ : 0);
}

// The deleter marks the storage, and its context is the owner. It frees nothing, since others own the memory.
const void* FlatStorage::owner_of(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return nullptr;
  const c10::DataPtr& pointer = tensor.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  return pointer.get_deleter() == &free_nothing ? pointer.get_context() : nullptr;
}

void FlatStorage::point_to(void* memory, std::int64_t bytes) {
  c10::StorageImpl* storage = tensor_.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(owner_ ? c10::DataPtr(memory, const_cast<void*>(owner_), &free_nothing, tensor_.device())
                                      : c10::DataPtr(memory, tensor_.device()));
  storage->set_nbytes(static_cast<std::size_t>(bytes));
  if (owner_) refuse_raw_pointers(*storage, memory == nullptr && bytes_ > 0);
}

void point_at(const at::Tensor& tensor, const at::Tensor& data) {
  if (tensor.is_meta() == data.is_meta()) return tensor.set_data(data);
  tensor.unsafeGetTensorImpl()->shallow_copy_from(data.getIntrusivePtr());
}

void FlatStorage::attach(void* memory) {
  ZERO_CHECK(!attached_, "the storage has memory already");
  attached_ = true;
  point_to(memory, bytes_);
}

void FlatStorage::detach() {
  ZERO_CHECK(attached_, "the storage has no memory to take away");
  attached_ = false;
  point_to(nullptr, 0);
}

}  // namespace zero
