#include "base/error.h"
#include "models/ops/cuda/device_rows.h"
#include "models/ops/device_setting.h"

namespace zero::cuda {
namespace {

[[noreturn]] void absent() { throw InputError("this build has no CUDA kernels; build the cuda preset"); }

}  // namespace

bool takes_type(const at::Tensor&) { return false; }
bool takes_rows(const at::Tensor&) { return false; }
bool takes(const at::Tensor&) { return false; }
RmsNormed rms_norm(const at::Tensor&, const at::Tensor&, double) { absent(); }
at::Tensor rms_norm_again(const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
RmsNormGradients rms_norm_backward(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, bool) {
  absent();
}
at::Tensor swiglu(const at::Tensor&) { absent(); }
at::Tensor swiglu_backward(const at::Tensor&, const at::Tensor&) { absent(); }
CrossEntropy cross_entropy(const at::Tensor&, const at::Tensor&) { absent(); }
void cross_entropy_backward_(at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
at::Tensor dropout_mask(const LowRank&, const at::Tensor&) { absent(); }
at::Tensor rotate_qkv(const at::Tensor&, const Rotary::Table&, const at::Tensor&, std::int64_t) { absent(); }

}  // namespace zero::cuda

namespace zero {

void forbid_waiting(bool) { throw InputError("this build has no CUDA; build the cuda preset"); }
std::string prepare_device(int, at::ScalarType, bool) {
  throw InputError("this build has no CUDA; build the cuda preset");
}

}  // namespace zero
