#include "comm/nccl_memory.h"

#include <ATen/ATen.h>
#include <dlfcn.h>
#include <nccl.h>

#include "comm/cuda_check.h"
#include "comm/nccl_library.h"

namespace zero {
namespace {

// Newer than some libraries that may be loaded: looked up, not linked.
template <class Function>
Function* found(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

NcclGroup::NcclGroup(std::shared_ptr<NcclWatchdog> watchdog, ncclComm* comm, int device, int ranks)
    : watchdog_(std::move(watchdog)), comm_(comm), device_(device), ranks_(ranks) {
  watchdog_->watch(comm);
}

NcclGroup::~NcclGroup() { watchdog_->retire(comm_); }

NcclGroup::Block NcclGroup::take(std::size_t bytes) {
  Block block;
  const std::size_t rounded = (bytes + NCCL_WIN_REQUIRED_ALIGNMENT - 1) / NCCL_WIN_REQUIRED_ALIGNMENT * NCCL_WIN_REQUIRED_ALIGNMENT;
  block.bytes = static_cast<std::int64_t>(rounded);
  bytes_ += block.bytes;
  std::unique_lock lock(watchdog_->nccl_lock());
  check_nccl(ncclMemAlloc(&block.memory, rounded), "ncclMemAlloc");
  if (ranks_ == 1) return block;
  const auto window_register = found<decltype(ncclCommWindowRegister)>("ncclCommWindowRegister");
  if (window_register) {
    const int code = window_register(comm_, block.memory, rounded, reinterpret_cast<ncclWindow_t*>(&block.handle), NCCL_WIN_COLL_SYMMETRIC);
    lock.unlock();
    watchdog_->settle(comm_, code, "ncclCommWindowRegister");
    lock.lock();
    if (block.handle) block.registration = Registration::window;  // NCCL gives none where the hardware has no symmetric memory
  }
  if (!block.handle) {
    const int code = ncclCommRegister(comm_, block.memory, rounded, &block.handle);
    lock.unlock();
    watchdog_->settle(comm_, code, "ncclCommRegister");
    if (block.handle) block.registration = Registration::buffer;
  }
  return block;
}

void NcclGroup::give_back(const Block& block) {
  cudaDeviceSynchronize();  // kernels may still use it, and unmapping waits for nobody
  std::lock_guard lock(watchdog_->nccl_lock());
  if (!watchdog_->has_failed()) {
    ncclResult_t state = ncclSuccess;
    if (block.registration == Registration::window)
      if (const auto deregister = found<decltype(ncclCommWindowDeregister)>("ncclCommWindowDeregister"))
        state = deregister(comm_, static_cast<ncclWindow_t>(block.handle));
    if (block.registration == Registration::buffer) state = ncclCommDeregister(comm_, block.handle);
    while (state == ncclInProgress && ncclCommGetAsyncError(comm_, &state) == ncclSuccess) std::this_thread::yield();
  }
  ncclMemFree(block.memory);
  bytes_ -= block.bytes;
}

void NcclGroup::log_registration(Registration registration, std::size_t bytes) {
  if (std::exchange(logged_, true)) return;
  const char* how = registration == Registration::window   ? "registered as symmetric windows"
                    : registration == Registration::buffer ? "registered as buffers"
                                                           : "not registered";
  log_info("NCCL: buffers of ", ranks_, " ranks come from ncclMemAlloc, ", how, " (the first has ", bytes, " bytes)");
}

at::Tensor NcclGroup::allocate(const std::shared_ptr<NcclGroup>& group, std::int64_t numel, at::ScalarType type) {
  const auto options = at::TensorOptions().dtype(type).device(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(group->device_)));
  const std::size_t bytes = static_cast<std::size_t>(numel) * c10::elementSize(type);
  if (bytes == 0) return at::empty({0}, options);
  check_cuda(cudaSetDevice(group->device_), "cudaSetDevice");
  const Block block = group->take(bytes);
  group->log_registration(block.registration, bytes);
  check_cuda(cudaMemset(block.memory, 0, bytes), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // other streams do not follow the default one
  return at::from_blob(block.memory, {numel}, [group, block](void*) { group->give_back(block); }, options);
}

}  // namespace zero
