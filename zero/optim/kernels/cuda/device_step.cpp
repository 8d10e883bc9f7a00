#include "zero/optim/kernels/device_step.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

#include "base/error.h"
#include "base/numbers/number_types.h"
#include "zero/optim/kernels/cuda/step_kernels.h"

namespace zero {
namespace {

void* stream_of(const at::Tensor& tensor) {
  ZERO_CHECK(tensor.is_cuda() && tensor.scalar_type() == at::kDouble, "a step's numbers are fp64 in device memory");
  return c10::cuda::getCurrentCUDAStream(tensor.get_device()).stream();
}

}  // namespace

void device_add_sum_of_squares(const at::Tensor& flat, const at::Tensor& scratch, const at::Tensor& numbers) {
  ZERO_CHECK(flat.is_contiguous() && scratch.numel() == device_norm_blocks, "sum of squares of a flat tensor");
  cuda::add_sum_of_squares(flat.const_data_ptr(), number_of(flat.scalar_type()), flat.numel(),
                           scratch.data_ptr<double>(), device_norm_blocks,
                           numbers.data_ptr<double>() + StepNumbers::sum_of_squares, stream_of(numbers));
}

void device_judge_step(const at::Tensor& numbers, const StepRule& rule) {
  cuda::judge_step({numbers.data_ptr<double>(), rule.max_norm, rule.loss_scale, rule.beta1, rule.beta2},
                   stream_of(numbers));
}

void device_adamw_update(const UpdateSpan& span, const StepFactors& factors, const at::Tensor& numbers) {
  const Number state = number_of(span.master.scalar_type()), gradient = number_of(span.gradient.scalar_type());
  ZERO_CHECK((state == Number::fp64) == (gradient == Number::fp64), "fp64 states go with fp64 gradients");
  const bool has_weights = span.weights.defined();
  cuda::adamw({span.master.data_ptr(), span.states[0].data_ptr(), span.states[1].data_ptr(),
               span.gradient.const_data_ptr(), has_weights ? span.weights.data_ptr() : nullptr, state, gradient,
               has_weights ? number_of(span.weights.scalar_type()) : state, span.master.numel(), factors.lr,
               factors.beta1, factors.beta2, factors.eps, factors.weight_decay, numbers.const_data_ptr<double>()},
              stream_of(numbers));
}

}  // namespace zero
