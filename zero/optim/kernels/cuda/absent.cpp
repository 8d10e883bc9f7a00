#include "base/error.h"
#include "zero/optim/kernels/device_step.h"
#include "zero/optim/kernels/stored_states.h"

namespace zero {
namespace {

[[noreturn]] void absent() { throw InputError("this build has no CUDA kernels; build the cuda preset"); }

}  // namespace

void device_add_sum_of_squares(const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
void device_judge_step(const at::Tensor&, const StepRule&) { absent(); }
void device_adamw_update(const UpdateSpan&, const StepFactors&, const at::Tensor&) { absent(); }
void device_round_stochastically(const at::Tensor&, const at::Tensor&, const RoundingDraws&, std::int64_t) { absent(); }
void device_split_master(const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
void device_join_master(const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }

}  // namespace zero
