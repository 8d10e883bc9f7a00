#pragma once
// The operations of rms_norm.h, swiglu.h, cross_entropy.h, the rotation of attention and the draws of dropout on a GPU,
// by kernels. In a build without CUDA takes() is always false (absent.cpp), and callers go on to LibTorch's operations.
#include <ATen/core/Tensor.h>

#include "models/ops/cross_entropy.h"
#include "models/ops/low_rank.h"
#include "models/ops/rms_norm.h"
#include "models/ops/rotary.h"

namespace zero::cuda {

/// A CUDA tensor of fp32, bf16 or fp16: what the rotation and the cross-entropy take.
bool takes_type(const at::Tensor& tensor);
/// What SwiGLU takes: such a tensor, contiguous, of rows that are whole 16-byte chunks.
bool takes_rows(const at::Tensor& rows);
/// What the norm takes: such rows, not longer than a block holds.
bool takes(const at::Tensor& rows);

RmsNormed rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
at::Tensor rms_norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd);
RmsNormGradients rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& rstd, bool want_weight);

at::Tensor swiglu(const at::Tensor& gate_up);
at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up);

/// Rows with a negative target count nothing. A target beyond the vocabulary makes the loss NaN: nothing waits for the
/// device.
CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets);
void cross_entropy_backward_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                             const at::Tensor& scale);

/// The adapter's dropout for rows like z's: [n, in] of z's type, zero or 1 / (1 - p), to the bits of the CPU's. For
/// takes_type().
at::Tensor dropout_mask(const LowRank& adapter, const at::Tensor& z);

/// qkv [B, T, width] with its first `turned` heads rotated, through autograd.
at::Tensor rotate_qkv(const at::Tensor& qkv, const Rotary::Table& table, const at::Tensor& positions,
                      std::int64_t turned);

}  // namespace zero::cuda
