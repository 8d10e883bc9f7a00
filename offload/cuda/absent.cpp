#include "comm/error.h"
#include "offload/device_nf4.h"
#include "offload/device_step.h"
#include "offload/host_tensor.h"

namespace zero {
namespace {

[[noreturn]] void absent() { throw InputError("this build has no CUDA kernels; build the cuda preset"); }

}  // namespace

void device_add_sum_of_squares(const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
void device_judge_step(const at::Tensor&, const StepRule&) { absent(); }
void device_adamw_update(const AdamWSpan&, const AdamWFactors&, double, const at::Tensor&) { absent(); }
DeviceNf4::DeviceNf4(at::Device) { absent(); }
void DeviceNf4::encode(const at::Tensor&, const Nf4Blocks&) const { absent(); }
at::Tensor DeviceNf4::table_of(const std::vector<cuda::Nf4Piece>&) const { absent(); }
void DeviceNf4::decode(const at::Tensor&, const at::Tensor&, const at::Tensor&) const { absent(); }
void lock_pages(void*, std::size_t) { absent(); }
void unlock_pages(void*) noexcept {}

}  // namespace zero
