#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

#include "base/error.h"
#include "zero/optim/kernels/cuda/stored_state_kernels.h"
#include "zero/optim/kernels/device_step.h"
#include "zero/optim/kernels/stored_states.h"

namespace zero {
namespace {

void* stream_of(const at::Tensor& tensor) { return c10::cuda::getCurrentCUDAStream(tensor.get_device()).stream(); }

std::uint16_t* halves_of(const at::Tensor& tensor) { return static_cast<std::uint16_t*>(tensor.data_ptr()); }

cuda::SplitJob job_of(const at::Tensor& master, const at::Tensor& weights, const at::Tensor& remainder) {
  return {master.data_ptr<float>(), halves_of(weights), halves_of(remainder), master.numel()};
}

}  // namespace

void device_round_stochastically(const at::Tensor& from, const at::Tensor& to, const RoundingDraws& draws,
                                 std::int64_t first) {
  ZERO_CHECK(draws.numbers && draws.numbers->is_cuda(), "a GPU's step is counted in its memory");
  cuda::round_stochastically({from.const_data_ptr<float>(), halves_of(to), from.numel(), first, draws.seed,
                              draws.stream, draws.numbers->const_data_ptr<double>() + StepNumbers::steps},
                             stream_of(from));
}

void device_split_master(const at::Tensor& master, const at::Tensor& weights, const at::Tensor& remainder) {
  cuda::split_master(job_of(master, weights, remainder), stream_of(master));
}

void device_join_master(const at::Tensor& weights, const at::Tensor& remainder, const at::Tensor& master) {
  cuda::join_master(job_of(master, weights, remainder), stream_of(master));
}

}  // namespace zero
