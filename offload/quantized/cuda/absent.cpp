#include "base/error.h"
#include "offload/quantized/device_ggml.h"
#include "offload/quantized/device_nf4.h"

namespace zero {
namespace {

[[noreturn]] void absent() { throw InputError("this build has no CUDA kernels; build the cuda preset"); }

}  // namespace

DeviceNf4::DeviceNf4(at::Device) { absent(); }
void DeviceNf4::encode(const at::Tensor&, const Nf4Blocks&) const { absent(); }
at::Tensor DeviceNf4::table_of(const std::vector<cuda::Nf4Run>&) const { absent(); }
void DeviceNf4::decode(const at::Tensor&, const at::Tensor&, const at::Tensor&) const { absent(); }

at::Tensor DeviceGgml::table_of(const std::vector<cuda::GgmlRun>&) const { absent(); }
void DeviceGgml::decode(const at::Tensor&, const at::Tensor&, const at::Tensor&) const { absent(); }

}  // namespace zero
