#include "base/cuda_check.h"
#include "offload/memory/host_tensor.h"

namespace zero {

void lock_pages(void* begin, std::size_t bytes) {
  check_cuda(cudaHostRegister(begin, bytes, cudaHostRegisterPortable),
             "locking host memory for the GPU (ulimit -l bounds it)");
}

void unlock_pages(void* begin) noexcept { cudaHostUnregister(begin); }

}  // namespace zero
