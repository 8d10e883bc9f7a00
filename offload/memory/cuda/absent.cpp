#include "base/error.h"
#include "offload/memory/host_tensor.h"

namespace zero {
namespace {

[[noreturn]] void absent() { throw InputError("this build has no CUDA kernels; build the cuda preset"); }

}  // namespace

void lock_pages(void*, std::size_t) { absent(); }
void unlock_pages(void*) noexcept {}

}  // namespace zero
