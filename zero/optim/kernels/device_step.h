#pragma once
// The optimizer's step on a GPU without a host wait. Norm, clip factor, step count and the finite flag are in device
// memory, where AdamW reads them. In a build without CUDA the device functions throw (cuda/absent.cpp).
#include "zero/optim/kernels/update_span.h"

namespace zero {

/// fp64 [count] in device memory.
struct StepNumbers {
  enum Index : int { sum_of_squares, norm, factor, steps, finite, bias1, bias2_root, loss, count };
};

/// numbers[sum_of_squares] += the sum over a flat fp32, bf16, fp16 or fp64 tensor, accumulated in fp64 in a fixed
/// order. `scratch`: fp64 [device_norm_blocks] on the same device.
inline constexpr int device_norm_blocks = 1024;
void device_add_sum_of_squares(const at::Tensor& flat, const at::Tensor& scratch, const at::Tensor& numbers);

struct StepRule {
  double max_norm = 1.0;  // 0: no clipping
  double loss_scale = 1.0;
  double beta1 = 0.9;
  double beta2 = 0.95;
};

/// Computes norm, factor and finite from the sum of squares over all ranks. Counts the step if it is finite.
void device_judge_step(const at::Tensor& numbers, const StepRule& rule);

/// Returns the StepNumbers, in host memory, of a step that the host found to be finite. A kernel that reads a copy of
/// them computes the same bits as the host computes from the factors.
at::Tensor step_numbers(const StepFactors& factors);

/// Runs AdamW's update on device memory. The states are the two moments, in fp32 or fp64. Step and gradient_scale come
/// from `numbers`. Does nothing if the step is not finite.
void device_adamw_update(const UpdateSpan& span, const StepFactors& factors, const at::Tensor& numbers);

}  // namespace zero
