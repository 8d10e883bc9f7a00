#include "base/error.h"
#include "models/ops/cuda/device_operators.h"
#include "models/ops/cuda/device_setting.h"

namespace zero {

void cuda::register_kernels(torch::Library&) {}
void cuda::register_attention(torch::Library&) {}

void forbid_waiting(bool) { throw InputError("this build has no CUDA; build the cuda preset"); }
std::string prepare_device(int, at::ScalarType, bool) {
  throw InputError("this build has no CUDA; build the cuda preset");
}

}  // namespace zero
