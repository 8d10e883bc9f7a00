#include "comm/nccl/nccl_memory.h"

#include <ATen/ATen.h>
#include <dlfcn.h>
#include <nccl.h>

#include <exception>

#include "base/cuda_check.h"
#include "comm/nccl/nccl_library.h"

namespace zero {
namespace {

// Looked up at run time, since older libraries lack it.
template <class Function>
Function* found(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::int64_t whole_pages(std::int64_t bytes) {
  return (bytes + NCCL_WIN_REQUIRED_ALIGNMENT - 1) / NCCL_WIN_REQUIRED_ALIGNMENT * NCCL_WIN_REQUIRED_ALIGNMENT;
}

}  // namespace

NcclArena::NcclArena(std::shared_ptr<NcclGroup> group, std::int64_t bytes)
    : group_(std::move(group)), map_(whole_pages(bytes)) {
  check_cuda(cudaSetDevice(group_->device()), "cudaSetDevice");
  {
    std::lock_guard lock(group_->watchdog().nccl_lock());
    check_nccl(ncclMemAlloc(&memory_, static_cast<std::size_t>(map_.bytes())), "ncclMemAlloc");
  }
  enrol();
  check_cuda(cudaMemset(memory_, 0, static_cast<std::size_t>(map_.bytes())), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // other streams do not wait for the default one
}

/// The window's handle arrives when the call completes. With NCCL_LOCAL_REGISTER=0 there is none, and nothing is
/// registered.
void NcclArena::enrol() {
  NcclWatchdog& watchdog = group_->watchdog();
  const auto bytes = static_cast<std::size_t>(map_.bytes());
  int code = ncclSuccess;
  if (const auto window_register = found<decltype(ncclCommWindowRegister)>("ncclCommWindowRegister")) {
    {
      std::lock_guard lock(watchdog.nccl_lock());
      if (!watchdog.has_failed())
        code = window_register(group_->comm(), memory_, bytes, reinterpret_cast<ncclWindow_t*>(&handle_),
                               NCCL_WIN_COLL_SYMMETRIC);
    }
    watchdog.check();
    watchdog.settle(group_->comm(), code, "ncclCommWindowRegister");
    if (handle_) registration_ = Registration::window;
  }
  if (handle_) return;
  {
    std::lock_guard lock(watchdog.nccl_lock());
    if (!watchdog.has_failed()) code = ncclCommRegister(group_->comm(), memory_, bytes, &handle_);
  }
  watchdog.check();
  watchdog.settle(group_->comm(), code, "ncclCommRegister");
  if (handle_) registration_ = Registration::buffer;
}

NcclArena::~NcclArena() {
  if (!memory_ || std::uncaught_exceptions() > 0 || group_->watchdog().has_failed()) return;
  cudaDeviceSynchronize();  // kernels may still use it, and unmapping does not wait
  std::lock_guard lock(group_->watchdog().nccl_lock());
  if (group_->watchdog().has_failed()) return;
  ncclResult_t state = ncclSuccess;
  if (registration_ == Registration::window)
    if (const auto deregister = found<decltype(ncclCommWindowDeregister)>("ncclCommWindowDeregister"))
      state = deregister(group_->comm(), static_cast<ncclWindow_t>(handle_));
  if (registration_ == Registration::buffer) state = ncclCommDeregister(group_->comm(), handle_);
  while (state == ncclInProgress && ncclCommGetAsyncError(group_->comm(), &state) == ncclSuccess)
    std::this_thread::yield();
  ncclMemFree(memory_);
}

at::Tensor NcclArena::take(std::int64_t numel, at::ScalarType type) {
  const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(group_->device()));
  const auto options = at::TensorOptions().dtype(type).device(device);
  if (numel == 0) return at::empty({0}, options);
  const std::int64_t offset = map_.take(numel * static_cast<std::int64_t>(c10::elementSize(type)));
  if (offset < 0) return {};
  auto give_back = [arena = shared_from_this(), offset](void*) { arena->map_.give_back(offset); };
  return at::from_blob(static_cast<char*>(memory_) + offset, {numel}, std::move(give_back), options, device);
}

const char* NcclArena::registration() const {
  return registration_ == Registration::window   ? "as a window"
         : registration_ == Registration::buffer ? "as a buffer"
                                                 : "not";
}

}  // namespace zero
