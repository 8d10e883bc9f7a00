#include "zero/core/buffers/flat_storage.h"

#include <ATen/ATen.h>
#include <c10/core/StorageImpl.h>

#include "base/error.h"

namespace zero {

FlatStorage::FlatStorage(std::int64_t numel, at::ScalarType type, at::Device device)
    : bytes_(numel * static_cast<std::int64_t>(c10::elementSize(type))) {
  tensor_ = at::empty({0}, at::TensorOptions().dtype(type).device(device));
  tensor_.unsafeGetTensorImpl()->set_sizes_contiguous({numel});
}

void FlatStorage::attach(void* memory) {
  ZERO_CHECK(!attached_, "the storage has memory already");
  c10::StorageImpl* storage = tensor_.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(memory, tensor_.device()));
  storage->set_nbytes(static_cast<std::size_t>(bytes_));
  attached_ = true;
}

void FlatStorage::detach() {
  ZERO_CHECK(attached_, "the storage has no memory to take away");
  c10::StorageImpl* storage = tensor_.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(nullptr, tensor_.device()));
  storage->set_nbytes(0);
  attached_ = false;
}

}  // namespace zero
